/*
 * number_list.h - lists of whole numbers as the kernel and the core map write them: "0-3,8,10-11".
 */
#ifndef MUSTER_NUMBER_LIST_H
#define MUSTER_NUMBER_LIST_H

#include "muster/base.h"

#define NUMBER_LIST_MAX 1000000u /* no number is larger */

/*
 * Takes the next range off *list, blanks around it included. False: the list is over (**list is 0), or what stands there is no range (**list is its
 * first byte): a number, or two with - between them, the smaller one first.
 */
bool number_list_next(const char **list, unsigned int *first, unsigned int *last);

/* Calls `each` for every number of the list. False: it is no list; the numbers in front of the fault have been told. */
bool number_list_each(const char *list, void (*each)(void *arg, unsigned int number), void *arg);

/* Writes the numbers below `n` for which `has` is true as a list; "none" when there are none. Cut at `len`. */
void number_list_write(char *out, size_t len, unsigned int n, bool (*has)(const void *arg, unsigned int number), const void *arg);

#endif
