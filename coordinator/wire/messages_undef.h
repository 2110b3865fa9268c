/*
 * messages_undef.h - takes back the row macros after an expansion of messages.def. No include guard.
 */
#undef MESSAGE
#undef STRUCT
#undef END
#undef SCALAR
#undef STRING
#undef BYTES
#undef RECORDS
#undef ARRAY
#undef STRUCTS
#undef NESTED
#undef TAGGED_SCALAR
#undef TAGGED_STRING
#undef TAGGED_STRUCTS
#undef TAGGED_NESTED
