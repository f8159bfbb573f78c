#!/usr/bin/env bash
#
# A daemon that hangs, stopped wherever it is: every tool ends by ^C, whenever that
# comes, and without one where it has no answer at all.
# DDBFS_HANG_ROUNDS (1): how many times forty tools meet it.
# timeout: 900
. "$(dirname "$0")/lib.sh"

files=4000

# The tools run while the daemon is stopped, each interrupted at a random moment; the last ones
# are not, and have never got an answer. Prints what each did, fails if one was not gone in time.
cat >"$tmp/hang.py" <<'TXT'
import os, random, signal, subprocess, sys, time

ddbfs, directory, daemon, seed, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
random.seed(seed)
verbs = [['undo', directory], ['undo', '--list', directory], ['undo', '--dry-run', directory],
	['trash', 'list', directory], ['trash', 'list', '--json', '--sort', 'size', directory],
	['trash', 'history', directory], ['trash', 'empty', '--dry-run', directory],
	['trash', 'restore', directory + '/one', directory + '/two'], ['trash', 'restore', directory + '/three'],
	['df', directory], ['status'], ['status', directory], ['policy', 'show', directory],
	['policy', 'set', directory, 'grace=10m'], ['policy', 'unset', directory, 'hold'],
	['policy', 'set', directory, 'grace=10m', '--apply-existing'], ['sweep', directory], ['scrub', directory]]
# Never answered, and not interrupted: each touches the mount by another call first.
patient = [['policy', 'set', directory, 'grace=10m'], ['undo', directory + '/not-looked-up-yet'],
	['trash', 'list', directory], ['status', directory]]
GRACE, FIRST, SLACK = 7, 11, 4  # watch.h's seconds and one to be killed in; a loaded machine

class Tool:
	def __init__(self, number, words, patient):
		self.words, self.patient = words, patient
		self.name = '%s/%d' % (out, number)
		self.begun = time.monotonic()
		self.log = open(self.name, 'w')
		self.process = subprocess.Popen([ddbfs] + words, stdin=subprocess.DEVNULL, stdout=self.log,
			stderr=self.log, cwd='/' if hangs else directory + '/.trash', start_new_session=True)
		self.interrupted = None if patient else self.begun + random.choice([0.003, 0.03, 0.3, 2]) * random.random()

tools, stop_at, hangs = [], random.randrange(4, 30), False
try:
	for i in range(40 + len(patient)):
		if i == stop_at:
			time.sleep(random.random() * 0.02)
			os.kill(daemon, signal.SIGSTOP)
			hangs = True
		words = verbs[i] if i < len(verbs) else random.choice(verbs) if i < 40 else patient[i - 40]
		tools.append(Tool(i, words, i >= 40))
		time.sleep(random.random() * 0.005)
	failed = False
	while any(t.process.returncode is None for t in tools):
		now = time.monotonic()
		for t in [t for t in tools if t.process.returncode is None]:
			if not t.patient and t.interrupted and now >= t.interrupted:
				os.killpg(t.process.pid, signal.SIGINT)
				t.due, t.interrupted = now + GRACE + SLACK, None
			if t.process.poll() is not None:
				print('%-10.2f %4d %s' % (now - t.begun, t.process.returncode, ' '.join(t.words)))
			elif now > (t.begun + FIRST + SLACK if t.patient else getattr(t, 'due', now)):
				print('still there after %.1f s: %s' % (now - t.begun, ' '.join(t.words)))
				failed = True
				t.process.returncode = -9
		time.sleep(0.005)
	for t in tools:
		text = open(t.name).read()
		if t.patient and (t.process.returncode != 1 or 'does not answer' not in text or '--force-unmount' not in text):
			print('%s: exit code %d: %s' % (' '.join(t.words), t.process.returncode, text))
			failed = True
		if t.process.returncode == 130 and 'interrupted' not in text:
			print('%s: interrupted, without a word: %s' % (' '.join(t.words), text))
			failed = True
		if t.process.returncode not in (0, 1, 3, 4, 5, 130, -signal.SIGINT):
			print('%s: exit code %d' % (' '.join(t.words), t.process.returncode))
			failed = True
	sys.exit(failed)
finally:
	os.kill(daemon, signal.SIGCONT)
TXT

stopped_anywhere() {
	local round seed pid

	for ((round = 0; round < ${DDBFS_HANG_ROUNDS:-1}; round++)); do
		seed=${DDBFS_TEST_SEED:-$RANDOM}
		echo "seed $seed"
		gives ok make t$round $files 20
		for i in one two three; do echo $i >$i; done
		rm one two three
		apart find t$round -type f -delete
		mkdir -p "$tmp/out"
		pid=$(daemon_pid)
		echo "$pid" >"$tmp/hangs"
		timeout 60 python3 "$tmp/hang.py" "$DDBFS" "$d" "$pid" "$seed" "$tmp/out"
		# Each job has stopped between two steps, and what they did is done once.
		settled() { ddbfs undo --skip "$d" || [ $? = 4 ]; }
		within_seconds 60 settled
		equal $files "$(count t$round -type f)" 'files brought back'
		rm -rf "$tmp/out" t$round one two three
	done
}

mount_new
it 'tools that meet a daemon that hangs end by ^C, and give up when it never answered' stopped_anywhere
it 'leaves a store that checks clean' check_clean
done_testing
