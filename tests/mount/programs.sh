#!/usr/bin/env bash
#
# Programs that people run on file systems, with what they made compared.
# timeout: 600
. "$(dirname "$0")/lib.sh"
limit=200

git() {
	command git -c user.name=test -c user.email=test@example.org -c init.defaultBranch=main "$@"
}

git_repository() {
	need git
	command git clone -q "$top" clone 2>/dev/null || command git clone -q --no-local "$top" clone
	cd clone
	git fsck --strict
	equal "$(command git -C "$top" rev-parse HEAD)" "$(git rev-parse HEAD)" HEAD
	for i in 1 2 3 4 5; do
		echo $i >file$i
		git add file$i
		git commit -qm "commit $i"
	done
	git checkout -qb branch HEAD~3
	echo other >file1
	git commit -qam other
	git rebase -q main 2>/dev/null || { git checkout -q --ours . && git add -A && GIT_EDITOR=true git rebase --continue; }
	git gc -q --prune=now
	git repack -adq
	git fsck --strict
	git worktree add -q ../worktree main
	equal 5 "$(cat ../worktree/file5)"
	git status --short | grep . && fail 'git status shows changes'
	rm -rf ../clone/.git/objects
	mv .git/.trash/objects .git/
	git fsck --strict
}

tar_out_and_in() {
	local source=$tmp/tree

	mkdir "$source"
	cp -a /usr/include "$source/" 2>/dev/null || cp -a /etc "$source/"
	mkfifo "$source/fifo"
	ln "$(find "$source" -type f -print -quit)" "$source/linked"
	tar -C "$source" -cf "$tmp/t.tar" .
	mkdir out
	tar -C out -xpf "$tmp/t.tar"
	same_tree "$source" out
	tar -C out -cf "$tmp/back.tar" --sort=name .
	mkdir "$tmp/again"
	tar -C "$tmp/again" -xpf "$tmp/back.tar"
	same_tree "$source" "$tmp/again"
	rm -rf "$tmp/again" "$tmp/t.tar" "$tmp/back.tar" "$source"
}

rsync_twice() {
	cp -a /usr/share/doc/. "$tmp/doc" 2>/dev/null || cp -a /etc/. "$tmp/doc"
	rsync -aHAX "$tmp/doc/" doc/
	equal '' "$(rsync -aHAX --itemize-changes "$tmp/doc/" doc/)" 'what a second rsync moves'
	find doc -type f | sed -n '1,50p' | xargs -d '\n' rm
	rsync -aHAX --delete "$tmp/doc/" doc/
	same_tree "$tmp/doc" doc
	rm -rf "$tmp/doc"
}

sqlite_writers() {
	local mode p

	need sqlite3
	for mode in delete wal; do
		sqlite3 $mode.db "pragma journal_mode=$mode; create table t(w integer, n integer)" >/dev/null
		for p in 1 2; do
			(for ((n = 0; n < 100; n++)); do echo "insert into t values($p, $n);"; done |
				sqlite3 -cmd '.timeout 20000' $mode.db) &
		done
		wait
		equal 200 "$(sqlite3 $mode.db 'select count(*) from t')" "rows in $mode mode"
		equal ok "$(sqlite3 $mode.db 'pragma integrity_check')"
		sqlite3 $mode.db 'delete from t where n < 50; vacuum'
		equal 100 "$(sqlite3 $mode.db 'select count(*) from t')"
		equal ok "$(sqlite3 $mode.db 'pragma integrity_check')"
	done
	equal '' "$(find . -name '*-journal*')" 'journals left'
}

editor() {
	local vim

	vim=$(command -v vim.basic || command -v vim.tiny || command -v vim) || skip 'no vim here'
	echo 'first line' >f
	chmod 640 f
	$vim -es -u NONE -c 'set backup writebackup backupcopy=no backupskip= swapfile' -c 'normal ggOadded' -c wq f </dev/null
	equal 'added first line' "$(xargs <f)"
	equal 640 "$(stat -c %a f)" mode
	equal '' "$(find . -name '*.sw?')" 'swap files left'
	$vim -es -u NONE -c 'set nobackup writebackup backupcopy=no backupskip=' -c 'normal ggOmore' -c wq f </dev/null
	equal 'more added first line' "$(xargs <f)"
	# The version before the last save was renamed to z~ (f~ being taken), then removed: it can be had back.
	equal 'added first line' "$(cat .trash/?~ | xargs)" 'the version before'
}

node_packages() {
	need npm node
	mkdir -p library app
	cat >library/package.json <<'TXT'
{ "name": "library", "version": "1.2.3", "main": "index.js", "bin": { "tell": "tell.js" } }
TXT
	echo 'module.exports = () => "from the library";' >library/index.js
	printf '#!/usr/bin/env node\nconsole.log(require("./index.js")());\n' >library/tell.js
	chmod 755 library/tell.js
	export HOME=$tmp npm_config_cache=$PWD/cache npm_config_update_notifier=false npm_config_offline=true
	(cd library && npm pack --silent)
	cd app
	echo '{ "name": "app", "version": "1.0.0" }' >package.json
	npm install --silent --no-audit --no-fund ../library/library-1.2.3.tgz
	equal 'from the library' "$(node -e 'console.log(require("library")())')"
	equal 'from the library' "$(node_modules/.bin/tell)"
	rm -rf node_modules
	npm ci --silent --no-audit --no-fund
	equal 'from the library' "$(node_modules/.bin/tell)"
	rm -rf node_modules
	ddbfs undo
	equal 'from the library' "$(node_modules/.bin/tell)"
}

walkers() {
	mkdir -p a/b/c
	gives ok make a 50 100
	gives ok make a/b/c 50 5000
	rm a/f1 a/b/c/f2
	equal 98 "$(find . -type f | wc -l)" 'find'
	equal 98 "$(find . -type f -print0 | xargs -0 stat -c %n | sort -u | wc -l)" 'stat'
	equal $((49 * 100 + 49 * 5000)) "$(find . -type f -printf '%s\n' | awk '{ s += $1 } END { print s }')" 'bytes by find'
	equal $((49 * 100 + 49 * 5000)) "$(du -sb --apparent-size a | awk -v d="$(find a -type d -printf '%s\n' | awk '{ s += $1 } END { print s }')" '{ print $1 - d }')" 'bytes by du'
	ls -lR >"$tmp/said"
	equal 98 "$(grep -c '^-' "$tmp/said")" 'ls -lR'
	cp -a a z
	diff -r a z
	chmod -R u+rwX,go= z
	chown -R 12:34 z
	equal 0 "$(find z ! -user 12 -o ! -group 34 | wc -l)" 'chown -R'
	find z -name 'f*' -delete
	equal 0 "$(find z -type f | wc -l)" 'find -delete'
	touch ./*
	rm -rf ./*
	equal '' "$(ls -A)"
	lists .trash a z
}

watching() {
	need inotifywait
	mkdir d
	inotifywait -q -m -e create,delete,moved_to,close_write --format '%e %f' d >"$tmp/events" 2>&1 &
	sleep 1
	echo x >d/f
	mv d/f d/g
	rm d/g
	sleep 0.5
	kill $!
	grep -q 'CREATE f' "$tmp/events"
	grep -q 'CLOSE_WRITE.* f' "$tmp/events"
	grep -q 'MOVED_TO g' "$tmp/events"
	grep -q 'DELETE g' "$tmp/events"
}

archives_and_copies() {
	head -c 3000000 /dev/urandom >f
	gzip -k f
	cmp f <(gzip -dc f.gz)
	split -b 100000 f part.
	cat part.* | cmp - f
	dd if=f of=g bs=7777 status=none
	cmp f g
	cp --reflink=auto f h
	cp --sparse=always f i
	install -m 711 f j
	equal 711 "$(stat -c %a j)"
	cmp f h && cmp f i && cmp f j
	sort -R -T . <(seq 100000) | sort -n -T . | cmp - <(seq 100000)
	truncate -s 0 f && [ ! -s f ]
	seq 1000 >s && sed -i 's/^/n/' s
	equal n1000 "$(tail -n 1 s)"
	mkdir m && mv s m/ && mv m n && content <(head -n 1 n/s) n1
}

# A program in two parts and their link map, by each linker that is here: the same bytes as on another file system.
linkers() {
	local linker n=0 where

	need cc
	printf 'int part(void); int main(void) { return part() - 42; }\n' >main.c
	printf 'int table[100000] = { 1 }; int part(void) { return table[0] + 41; }\n' >part.c
	mkdir "$tmp/link"
	for linker in bfd gold lld; do
		command -v ld.$linker >/dev/null || continue
		n=$((n + 1))
		for where in . "$tmp/link"; do
			cc -fuse-ld=$linker -Wl,--build-id=none -o $where/$linker main.c part.c
			$where/$linker
		done
		cmp $linker "$tmp/link/$linker"
		cp $linker copy
		cmp copy "$tmp/link/$linker"
		# Again over what is there, as a build does.
		cc -fuse-ld=$linker -Wl,--build-id=none -o $linker main.c part.c
		cmp $linker "$tmp/link/$linker"
	done
	rm -r "$tmp/link"
	[ $n -gt 0 ] || skip 'no linker here'
	ar rcs lib.a main.c part.c
	equal 'main.c part.c' "$(ar t lib.a | xargs)" 'members of an archive'
}

zip_archives() {
	need zip unzip
	mkdir -p tree/sub
	gives ok make tree/sub 100 500
	ln -s sub/f1 tree/link
	chmod 640 tree/sub/f2
	zip -qry t.zip tree
	unzip -tq t.zip
	mkdir out
	unzip -q t.zip -d out
	same_tree tree out/tree --omit-dir-times --no-times
	zip -qd t.zip 'tree/sub/f5*'
	unzip -tq t.zip
	# The archive before the last change was replaced by rename.
	unzip -tq .trash/t.zip
}

debian_packages() {
	need dpkg-deb
	mkdir -p p/DEBIAN p/usr/share/doc/thing p/etc
	printf 'Package: thing\nVersion: 1\nArchitecture: all\nMaintainer: T <t@example.org>\nDescription: thing\n' >p/DEBIAN/control
	gives ok make p/usr/share/doc/thing 50 3000
	ln -s ../usr p/etc/usr
	chmod 4755 p/usr/share/doc/thing/f1
	dpkg-deb -b p thing.deb >/dev/null
	dpkg -x thing.deb out
	rm -r p/DEBIAN
	same_tree p out --omit-dir-times
	dpkg -x thing.deb out
	same_tree p out --omit-dir-times
}

flock_users() {
	local p i

	echo 0 >n
	for p in 1 2 3 4 5 6; do
		(for ((i = 0; i < 20; i++)); do
			flock lock bash -c 'read -r v <n; echo $((v + 1)) >n'
		done) &
	done
	wait
	content n 120
	flock -n lock true
	(flock 9 && ! flock -n lock true) 9>lock
}

# Compiled and linked by meson and ninja, then changed, cleaned, and built again.
meson_builds() {
	local i

	need meson ninja cc
	mkdir p
	printf "project('p', 'c')\nexecutable('p', 'main.c', %s)\n" "$(printf "'f%d.c'," {1..20})" >p/meson.build
	echo 'int f20(void); int main(void) { return f20(); }' >p/main.c
	echo 'int f1(void) { return 0; }' >p/f1.c
	for ((i = 2; i <= 20; i++)); do
		echo "int f$((i - 1))(void); int f$i(void) { return f$((i - 1))(); }" >p/f$i.c
	done
	meson setup p/build p >/dev/null
	ninja -C p/build >/dev/null
	p/build/p
	equal 'ninja: no work to do.' "$(ninja -C p/build | tail -n 1)" 'a second build'
	echo 'int f1(void) { return 3; }' >p/f1.c
	ninja -C p/build | grep -q '^\[2/2\]'
	equal 3 "$(p/build/p || echo $?)" 'what it returns'
	apart ninja -C p/build -t clean >/dev/null
	absent p/build/p
	# Objects that lived under a minute and were made by others are in the trash all the same.
	ddbfs undo >/dev/null
	equal 'ninja: no work to do.' "$(ninja -C p/build | tail -n 1)" 'a build after undo'
}

rust_crates() {
	need cargo
	cargo --version >/dev/null 2>&1 || skip 'no toolchain behind cargo here'
	export CARGO_HOME=$d/home CARGO_INCREMENTAL=1
	mkdir -p crate/src crate/dep/src
	printf '[package]\nname = "crate"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\ndep = { path = "dep" }\n' >crate/Cargo.toml
	printf '[package]\nname = "dep"\nversion = "0.1.0"\nedition = "2021"\n' >crate/dep/Cargo.toml
	echo 'pub fn word() -> &'"'"'static str { "one" }' >crate/dep/src/lib.rs
	echo 'fn main() { println!("{}", dep::word()); }' >crate/src/main.rs
	cd crate
	cargo build -q --offline
	equal one "$(target/debug/crate)"
	sed -i s/one/two/ dep/src/lib.rs
	cargo build -q --offline
	equal two "$(target/debug/crate)" 'after a change'
	apart cargo clean -q
	absent target
	ddbfs undo . >/dev/null
	equal two "$(target/debug/crate)" 'after undo'
	equal '' "$(cargo build --offline 2>&1 | grep Compiling)" 'what it compiled again'
}

python_environments() {
	need python3
	python3 -c 'import venv' 2>/dev/null || skip 'no venv here'
	python3 -m venv --without-pip env
	mkdir env/package
	echo 'word = "here"' >env/package/__init__.py
	(cd env && bin/python -m compileall -q package)
	equal here "$(cd env && bin/python -c 'import package; print(package.word)')"
	sum=$(cd env && find . -type f -exec sha256sum {} + | sort)
	apart rm -rf env
	absent env
	ddbfs undo . >/dev/null
	equal "$sum" "$(cd env && find . -type f -exec sha256sum {} + | sort)" 'the environment after undo'
	equal here "$(cd env && bin/python -c 'import package; print(package.word)')"
}

archives_and_debugging() {
	need cc ar gdb
	echo 'int seven(void) { return 7; }' >seven.c
	echo 'int seven(void); int main(void) { return seven() - 7; }' >main.c
	cc -g -c seven.c main.c
	ar rcs libseven.a seven.o
	ar t libseven.a | grep -qx seven.o
	cc -g -o main main.o libseven.a
	./main
	# It maps what it reads, and the traced program is executed from here.
	gdb -nx -batch -ex 'break seven' -ex run -ex finish main 2>/dev/null | grep -q 'Value returned.*7' || fail 'gdb saw no 7'
}

mount_new
it 'git: clone, commit, rebase, gc, worktree, fsck, and its objects back from the trash' git_repository
it 'tar out and in: the same tree' tar_out_and_in
it 'rsync: the second run moves nothing' rsync_twice
it 'sqlite3: two writers in rollback and in WAL mode' sqlite_writers
it 'vim: swap file, save by rename, the version before' editor
it 'npm: install, ci, rm -rf node_modules and undo' node_packages
it 'find, du, ls, cp, chmod, chown and rm over whole trees' walkers
it 'inotifywait sees changes' watching
it 'gzip, split, dd, cp, install, sort and sed' archives_and_copies
it 'ld.bfd, gold and lld link the same bytes as elsewhere' linkers
it 'zip and unzip, also of what a change replaced' zip_archives
it 'dpkg -x unpacks a package, twice' debian_packages
it 'flock: six processes count together' flock_users
it 'meson and ninja build, build again after a change, and after clean and undo' meson_builds
it 'cargo builds a crate with a dependency, again after a change, and after clean and undo' rust_crates
it 'python: a virtual environment, its packages compiled, removed and back' python_environments
it 'ar, and gdb on what was built here' archives_and_debugging
it 'leaves a store that checks clean' check_clean
done_testing
