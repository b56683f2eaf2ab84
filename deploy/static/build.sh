#!/usr/bin/env bash
# Builds thimble as one static position-independent program on musl, from Debian's source packages.
#
#   deploy/static/build.sh [OUT]      default: build/static
#
# Needs a Debian 12 with gcc, make, cmake, ninja, musl-tools, linux-libc-dev, dpkg-dev and network for apt;
# `./dev static` installs what is missing and then calls this.  Nothing of the system is changed: the lists and
# sources that apt fetches stay in OUT.  Libraries are built once for each version and recipe, so that a second run takes seconds.
# The sources are those of `sources`, by version and by the checksum of the .dsc, which holds those of all other files.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
root=$(readlink -f "$here/../..")
out=${1:-$root/build/static}
mkdir -p "$out/src" "$out/log" "$out/done"
out=$(readlink -f "$out")
sys=$out/sys           # headers and libraries, for musl
jobs=$(nproc)
say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }
die() { printf 'static: %s\n' "$*" >&2; exit 1; }

[ "$(uname -m)" = x86_64 ] || die "only x86_64 is known to work"
musl=/usr/lib/x86_64-linux-musl
[ -e $musl/rcrt1.o ] || die "musl-tools is not installed"

# ---- sources ---------------------------------------------------------------

apt=(apt-get -q -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$out/apt/etc" -o "Dir::State=$out/apt/state"
     -o "Dir::Cache=$out/apt/cache" -o APT::Sandbox::User="$(id -un)")

# The system's own archives, asked for sources.
apt_begin() {
	[ ! -e "$out/apt/ready" ] || return 0
	mkdir -p "$out"/apt/{etc,state/lists/partial,cache/archives/partial}
	local f
	for f in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
		[ -e "$f" ] || continue
		case $f in
		*.sources) sed 's/^Types:.*/Types: deb-src/' "$f" >"$out/apt/etc/debian.sources" ;;
		*) sed -n 's/^deb /deb-src /p' "$f" >"$out/apt/etc/debian.list" ;;
		esac
	done
	say "asking for the lists of sources"
	"${apt[@]}" update >"$out/log/apt" 2>&1 || { tail "$out/log/apt" >&2; die "apt cannot read the lists"; }
	touch "$out/apt/ready"
}

# fetch NAME VERSION SHA256: the unpacked source, with Debian's changes, in $out/src/NAME
fetch() {
	local dsc="$1_${2#*:}.dsc"
	(
		cd "$out/src"
		if [ ! -e "$dsc" ]; then
			apt_begin
			"${apt[@]}" source --download-only "$1=$2" >"$out/log/$1.fetch" 2>&1 ||
				{ tail -5 "$out/log/$1.fetch" >&2; die "cannot fetch $1 $2"; }
		fi
		echo "$3  $dsc" | sha256sum -c --quiet - >&2 || die "$dsc is not the one that was meant"
		rm -rf "$1"
		dpkg-source --no-check -x "$dsc" "$1" >"$out/log/$1.unpack" 2>&1 ||
			{ tail -5 "$out/log/$1.unpack" >&2; die "cannot unpack $1"; }
	)
}

# ---- the compiler ----------------------------------------------------------

# musl-gcc does not see the kernel's headers; `-idirafter` lets it, behind its own.
make_compiler() {
	mkdir -p "$out/kernel" "$out/bin" "$sys/lib/pkgconfig" "$sys/include"
	ln -sfn /usr/include/linux "$out/kernel/linux"
	ln -sfn /usr/include/x86_64-linux-gnu/asm "$out/kernel/asm"
	ln -sfn /usr/include/asm-generic "$out/kernel/asm-generic"
	cat >"$out/bin/musl-cc" <<END
#!/bin/sh
exec musl-gcc "\$@" -idirafter $out/kernel
END
	chmod +x "$out/bin/musl-cc"
}
flags="-O2 -fPIE -fstack-protector-strong -D_FORTIFY_SOURCE=0 -ffunction-sections -fdata-sections"

# ---- libraries -------------------------------------------------------------

with_cmake() { # SOURCE OPTIONS...: a library that cmake builds
	local source=$1
	shift
	cmake -S "$source" -B build -G Ninja -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_C_COMPILER="$out/bin/musl-cc" -DCMAKE_C_FLAGS="$flags" \
		-DCMAKE_BUILD_TYPE=None -DCMAKE_INSTALL_PREFIX="$sys" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF "$@"
	cmake --build build -j "$jobs"
	cmake --install build
}

with_configure() { # OPTIONS...
	# a patch of Debian's may touch Makefile.am: nothing is to be generated anew
	./configure --host=x86_64-linux-musl --prefix="$sys" --disable-shared --enable-static CC="$out/bin/musl-cc" CFLAGS="$flags" "$@"
	make -j "$jobs" AUTOMAKE=: ACLOCAL=: AUTOCONF=: AUTOHEADER=:
	make install AUTOMAKE=: ACLOCAL=: AUTOCONF=: AUTOHEADER=:
}

build_openssl() {
	./Configure linux-x86_64 --prefix="$sys" --libdir=lib --openssldir=/etc/ssl CC="$out/bin/musl-cc" CFLAGS="$flags" \
		no-shared no-tests no-async no-engine no-dso no-module no-legacy no-comp no-dtls no-sctp no-srp no-psk no-gost \
		no-ssl3 no-idea no-seed no-camellia no-aria no-bf no-cast no-rc2 no-rc4 no-md4 no-mdc2 no-whirlpool no-sm2 no-sm3 no-sm4 no-cms no-ts
	make -j "$jobs" build_libs
	make install_dev
}
build_libevent() { with_configure --disable-openssl --disable-samples --disable-libevent-regress --disable-debug-mode; }
build_libyaml() { with_cmake . -DBUILD_TESTING=OFF; cat >"$sys/lib/pkgconfig/yaml-0.1.pc" <<END
Name: yaml
Description: libyaml
Version: 0.2.5
Cflags: -I$sys/include
Libs: -L$sys/lib -lyaml
END
}
build_pcre2() { with_cmake . -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_BUILD_TESTS=OFF -DPCRE2_SUPPORT_UNICODE=ON; }
build_zlib() { CC="$out/bin/musl-cc" CFLAGS="$flags" ./configure --static --prefix="$sys"; make -j "$jobs" libz.a; make install; }
build_brotli() { with_cmake . -DBROTLI_DISABLE_TESTS=ON; (cd "$sys/lib"; for l in common enc dec; do [ ! -e libbrotli$l-static.a ] || cp libbrotli$l-static.a libbrotli$l.a; done); }
build_libzstd() { with_cmake build/cmake -DZSTD_BUILD_PROGRAMS=OFF -DZSTD_BUILD_SHARED=OFF -DZSTD_LEGACY_SUPPORT=OFF -DZSTD_MULTITHREAD_SUPPORT=OFF; }
build_libxcrypt() { [ -x configure ] || autoreconf -fi; with_configure --enable-hashes=glibc,strong --disable-obsolete-api; }
build_c-ares() { with_cmake . -DCARES_STATIC=ON -DCARES_SHARED=OFF -DCARES_BUILD_TOOLS=OFF -DCARES_BUILD_TESTS=OFF; }
build_mimalloc() {
	"$out/bin/musl-cc" $flags -DNDEBUG -DMI_MALLOC_OVERRIDE -ftls-model=local-exec -fno-builtin-malloc -Iinclude -c src/static.c -o "$sys/lib/mimalloc.o"
	cp include/mimalloc*.h "$sys/include"
}

library() { # NAME VERSION SHA256
	local name=$1 mark
	mark=$out/done/$name-$({ declare -f "build_$name" with_cmake with_configure; echo "$2 $3 $flags"; } | sha256sum | cut -c1-16)
	[ ! -e "$mark" ] || return 0
	fetch "$@"
	say "building $name $2"
	(cd "$out/src/$name"; set -ex; "build_$name") >"$out/log/$name" 2>&1 &   # `|| die` right here would switch -e off inside
	wait $! || { tail -30 "$out/log/$name" >&2; die "$name does not build: $out/log/$name"; }
	rm -rf "$out/src/$name" "$sys"/lib/*.so*
	touch "$mark"
}

make_compiler
while read -r name version sum; do
	case $name in '' | '#'*) continue ;; esac
	library "$name" "$version" "$sum" </dev/null
done <"$here/sources"

# ---- thimble ---------------------------------------------------------------

program() { # NAME ALLOCATOR-OBJECT DEFINITIONS: $out/NAME
	local dir=$out/build-$1
	say "building $1"
	{
		[ -f "$dir/build.ninja" ] || cmake -S "$root" -B "$dir" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$here/toolchain.cmake" -DTHIMBLE_STATIC="$out" \
			-DTHIMBLE_ALLOCATOR="$2" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O3 -g -DNDEBUG -ffunction-sections -fdata-sections $3" \
			-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON
		cmake --build "$dir" --target thimble
	} >"$out/log/$1" 2>&1 &
	wait $! || { tail -30 "$out/log/$1" >&2; die "thimble does not build: $out/log/$1"; }
	strip -o "$out/$1" "$dir/thimble"
	check "$out/$1"
}

# What it must be: static, position-independent, without a segment that is written and executed, and able to start.
check() {
	readelf -h "$1" | grep -q 'Type:.*DYN' || die "$1 is not position-independent"
	! readelf -l "$1" | grep -q INTERP || die "$1 asks for a dynamic linker"
	readelf -lW "$1" | grep GNU_STACK | grep -q 'RW ' || die "$1 has an executable stack"
	"$1" version >/dev/null || die "$1 does not run"
	say "$1: $(stat -c %s "$1") bytes"
}

program thimble "$sys/lib/mimalloc.o" "-DTHIMBLE_MIMALLOC"
[ "${ALLOCATORS-}" = "" ] || program thimble-musl "" ""
