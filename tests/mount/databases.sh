#!/usr/bin/env bash
#
# Databases that sync what they acknowledge, killed in the middle of their work,
# and the file system with them: what was acknowledged is there afterwards.
# timeout: 400
. "$(dirname "$0")/lib.sh"

# ---- Redis, which appends each change to a file and syncs it -------------------

redis_start() {
	local data=$1

	# Debian's redis-server is this very program by another name; its own package would start a service.
	ln -sf "$(command -v redis-check-rdb)" "$tmp/redis-server"
	"$tmp/redis-server" --port 0 --unixsocket "$tmp/redis.socket" --dir "$data" --appendonly yes \
		--appendfsync always --save '' --daemonize no >"$tmp/redis.log" 2>&1 &
	redis=$!
	redis_answers() { [ "$(redis PING)" = PONG ]; }
	within_seconds 30 redis_answers || { tail -n 5 "$tmp/redis.log"; return 1; }
}

redis() {
	timeout 20 redis-cli -s "$tmp/redis.socket" "$@" 2>/dev/null
}

# Counts up until $tmp/stop is there; the last number that was acknowledged. The client does not end with the server:
# without an end of what it is fed it would try on and on.
redis_count() {
	while [ ! -e "$tmp/stop" ]; do
		echo 'INCR n'
	done | timeout 60 redis-cli -s "$tmp/redis.socket" 2>/dev/null | grep -E '^[0-9]+$' | tail -n 1 >"$tmp/counted"
}

redis_survives() {
	local victim=$1 counted redis

	need redis-cli redis-check-rdb
	mkdir data
	redis_start "$d/data"
	redis SET text 'kept' >/dev/null
	rm -f "$tmp/stop"
	redis_count &
	sleep 1
	# When it cannot append any more, it ends by itself.
	[ "$victim" = server ] || kill_daemon
	kill -9 $redis 2>/dev/null || true
	: >"$tmp/stop"
	wait
	if [ "$victim" != server ]; then
		umount "$mnt"
		mount_up
		cd "$d"
	fi
	counted=$(cat "$tmp/counted")
	[ "${counted:-0}" -gt 20 ] || fail "only ${counted:-0} were counted"
	redis_start "$d/data"
	equal kept "$(redis GET text)" 'another value'
	within "$counted" $((counted + 1)) "$(redis GET n)" 'the counter'
	redis SHUTDOWN NOSAVE || true
	wait
}

# ---- SQLite ---------------------------------------------------------------------

sqlite_survives() {
	local mode=$1 seen last writer

	need sqlite3
	sqlite3 t.db "pragma journal_mode=$mode; create table t(n integer primary key, text)" >/dev/null
	(for ((n = 0; ; n++)); do
		echo "insert into t values($n, hex(randomblob(500))); select n from t where n = $n;"
	done | sqlite3 -batch t.db 2>/dev/null >"$tmp/rows") &
	writer=$!
	sleep 1
	[ "$2" = program ] || kill_daemon
	pkill -9 -P "$writer" || true
	wait $writer 2>/dev/null || true
	if [ "$2" != program ]; then
		umount "$mnt"
		mount_up
		cd "$d"
	fi
	last=$(tail -n 1 "$tmp/rows")
	[ "${last:-0}" -gt 5 ] || fail "only ${last:-0} rows were written"
	equal ok "$(sqlite3 t.db 'pragma integrity_check')" 'integrity'
	seen=$(sqlite3 t.db 'select count(*), max(n) from t')
	within "$last" $((last + 1)) "${seen#*|}" 'the last row'
	equal $((${seen#*|} + 1)) "${seen%|*}" 'rows'
}

# ---- PostgreSQL, whose packages are ten times the others': only where $DDBFS_POSTGRES says where its programs are ----

postgres_as() {
	setpriv --reuid="$bob" --regid="$bob" --clear-groups env HOME="$tmp" PGHOST="$tmp/pg" PGUSER=bob \
		PGDATABASE=bench "$DDBFS_POSTGRES/$1" "${@:2}"
}

postgres_start() {
	rm -f "$d/data/postmaster.pid"
	postgres_as postgres -D "$d/data" -k "$tmp/pg" -h '' -c fsync=on -c shared_buffers=16MB >"$tmp/pg/log" 2>&1 &
	within_seconds 60 postgres_as pg_isready -q || { tail -n 5 "$tmp/pg/log"; return 1; }
	postgres=$(head -n 1 "$d/data/postmaster.pid")
}

# One by one, until the server is gone; the last that was acknowledged.
postgres_count() {
	local n

	for ((n = 1; ; n++)); do
		postgres_as psql -qc "insert into acknowledged values ($n)" 2>/dev/null || break
		echo "$n" >"$tmp/counted"
	done
}

postgres_survives() {
	local children postgres

	cd /
	remount -o allow_other
	install -d -o "$bob" "$tmp/pg" "$d/data"
	postgres_as initdb -D "$d/data" -U bob --data-checksums >"$tmp/pg/log" || { tail "$tmp/pg/log"; return 1; }
	postgres_start
	PGDATABASE=postgres postgres_as createdb bench
	postgres_as psql -qc 'create extension amcheck; create table acknowledged (n int primary key)'
	postgres_as pgbench -q -i -s 2 2>/dev/null
	postgres_as pgbench -n -c 4 -T 30 >/dev/null 2>&1 &
	postgres_count &
	sleep 5
	children=$(pgrep -P $postgres)
	kill_daemon
	# shellcheck disable=SC2086
	kill -9 $postgres $children 2>/dev/null || true
	wait
	within_seconds 20 umount "$mnt" # its other processes are not ours to wait for
	mount_up -o allow_other
	postgres_start
	within "$(cat "$tmp/counted")" $(($(cat "$tmp/counted") + 1)) \
		"$(postgres_as psql -Atc 'select count(*) from acknowledged')" 'the rows'
	equal t "$(postgres_as psql -Atc 'select (select sum(abalance) from pgbench_accounts) = (select sum(bbalance)
		from pgbench_branches) and (select sum(tbalance) from pgbench_tellers) = (select sum(delta) from pgbench_history)')" \
		'the sums agree'
	postgres_as psql -qAtc "select bt_index_check(c.oid, true) from pg_class c join pg_am a on a.oid = c.relam
		where a.amname = 'btree' and c.relkind = 'i'" >/dev/null
	equal 0 "$(postgres_as psql -Atc "select count(*) from pg_class c, verify_heapam(c.oid) where c.relkind = 'r'")" \
		'damaged rows'
	# A key of its own is in each dump.
	postgres_as pg_dump | grep -v restrict >"$tmp/dump"
	kill -INT $postgres
	wait
	remount -o allow_other
	postgres_as pg_checksums --check -D "$d/data" >"$tmp/said" || { cat "$tmp/said"; return 1; }
	postgres_start
	postgres_as pg_dump | grep -v restrict | cmp - "$tmp/dump"
	kill -INT $postgres
	wait
	remount
}

mount_new
it 'Redis is killed, and has what it acknowledged' redis_survives server
it 'the file system is killed under Redis, and it has what it acknowledged' redis_survives daemon
it 'sqlite3 is killed in rollback mode, and has what it acknowledged' sqlite_survives delete program
it 'the file system is killed under sqlite3 in rollback mode' sqlite_survives delete daemon
it 'sqlite3 is killed in WAL mode' sqlite_survives wal program
it 'the file system is killed under sqlite3 in WAL mode' sqlite_survives wal daemon
[ -z "${DDBFS_POSTGRES:-}" ] || it 'the file system is killed under PostgreSQL, and it has what it acknowledged' postgres_survives
it 'leaves a store that checks clean' check_clean
done_testing
