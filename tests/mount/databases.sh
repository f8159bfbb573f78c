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

mount_new
it 'Redis is killed, and has what it acknowledged' redis_survives server
it 'the file system is killed under Redis, and it has what it acknowledged' redis_survives daemon
it 'sqlite3 is killed in rollback mode, and has what it acknowledged' sqlite_survives delete program
it 'the file system is killed under sqlite3 in rollback mode' sqlite_survives delete daemon
it 'sqlite3 is killed in WAL mode' sqlite_survives wal program
it 'the file system is killed under sqlite3 in WAL mode' sqlite_survives wal daemon
it 'leaves a store that checks clean' check_clean
done_testing
