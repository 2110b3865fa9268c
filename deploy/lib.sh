# lib.sh - what the scripts of this folder share. Sourced, never run.

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() {
	printf '%s\n' "$*"
}

fail() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# as_root COMMAND...: as it is for root, under sudo for anyone else.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		fail "this needs root, and there is no sudo: $*"
	fi
}

# build_variant DIR [TARGET]: DIR below the top, set up on its first use; build-san gets the sanitizers. Two callers at once wait
# for each other.
build_variant() {
	local dir=$TOP/$1
	local -a options=(--buildtype=release)
	[ "$1" = build-san ] && options=(--buildtype=debugoptimized -Dsanitizers=true)
	mkdir -p "$dir"
	(
		flock 9
		if [ ! -f "$dir/build.ninja" ]; then
			meson setup "${options[@]}" "$dir" "$TOP" || exit 1
		fi
		exec ninja -C "$dir" ${2:+"$2"}
	) 9>"$dir/.lock"
}
