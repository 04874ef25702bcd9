# Common functions of scripts/test and scripts/exam, to be sourced from the
# root: steps that are timed and counted, all of them run even when one fails,
# and a table at the end. The output of a step goes to target/test-log/STEP.log,
# and to the screen when the step fails (or always, with V=1).
# shellcheck shell=bash

logs=target/test-log
mkdir -p "$logs"
began=$SECONDS
# A step without output for so long has hung, and is ended. A step that makes
# progress is never ended, however slow the machine.
silent_seconds_max=900
rows=() passed=0 failed=0 remark= failed_names=()
# What failed, in short, for who runs more than one of these: target/test-log/test.failed.
outcome=$logs/$(basename "$0").failed
echo "$(basename "$0"): it did not come to its end" >"$outcome"

# In a session of its own, so that all processes of a step can be ended.
child=
end_child() { [ -z "$child" ] || kill -"$1" -- "-$child" 2>/dev/null; }
trap 'end_child TERM; echo; echo "Stopped."; exit 130' INT TERM

# watch LOG: waits for the end of the step; 124 when it hung and was ended.
watch() {
  local said='' now quiet_since=$SECONDS
  while kill -0 "$child" 2>/dev/null; do
    now=$(stat -c %s "$1")
    if [ "$now" != "$said" ]; then
      said=$now quiet_since=$SECONDS
    elif [ $((SECONDS - quiet_since)) -ge "$silent_seconds_max" ]; then
      end_child TERM
      sleep 5
      end_child KILL
      wait "$child" 2>/dev/null
      return 124
    fi
    sleep 0.2
  done
  wait "$child"
}

# explain LOG: why a step failed, without the successful parts.
explain() {
  local wrong='^---- .* stdout ----$|panicked at |^error(\[|:)|^(FAIL|fail) |FAILED'
  grep -nE -A 6 "$wrong" "$1" | head -n 120
  echo '  ... its last words:'
  grep -vE '^$|^running [0-9]+ tests?$|^test .* \.\.\. (ok|ignored)|^test result: ok|^ +(Running|Compiling|Checking|Doc-tests) ' \
    "$1" | tail -n 15
  printf '(all of it: %s)\n' "$1"
}

# names_of_failed LOG: what of a step failed, a line each: scripts, tests, fuzz
# targets; else what the compiler says, or the last line.
names_of_failed() {
  local pattern
  for pattern in '^failed: .*' '^test .* FAILED$' '^fuzz .* FAILED.*' '^error.*' '.+'; do
    if grep -qE "$pattern" "$1"; then
      grep -ohE "$pattern" "$1" | if [ "$pattern" = '.+' ]; then tail -n 1; else sort -u; fi |
        head -n 10 | cut -c1-160 | sed 's/^/    /'
      return
    fi
  done
}

# step NAME COMMAND...: runs it, and records the result. A step that counts
# its checks ("12 passed, 1 failed", "test result: ok. 12 passed; 0 failed")
# adds its counts to the totals; any other step counts as one check.
step() {
  local name=$1 log start status=0 counts good bad word=ok follower=
  # A name such as "over HTTP/2" names no directory.
  log=$logs/${name//[ \/]/-}.log start=$SECONDS
  shift
  printf '== %s\n' "$name"
  : >"$log"
  # In the background a shell ignores SIGINT and SIGQUIT; programs under test do not.
  setsid env --default-signal=INT,QUIT bash -c '"$@"' step "$@" >"$log" 2>&1 &
  child=$!
  if [ -n "${V:-}" ]; then
    tail -n +1 -s 0.1 -f --pid="$child" "$log" 2>/dev/null &
    follower=$!
  fi
  watch "$log" || status=$?
  [ -z "$follower" ] || wait "$follower"
  [ "$status" -ne 124 ] ||
    printf '(cut: it said nothing for %d s)\n' "$silent_seconds_max" | tee -a "$log"
  counts=$(sed -nE 's/.*[^0-9]?\b([0-9]+) passed[,;] ([0-9]+) failed.*/\1 \2/p' "$log")
  good=$(awk '{n += $1} END {print n + 0}' <<<"$counts")
  bad=$(awk '{n += $2} END {print n + 0}' <<<"$counts")
  if [ $((good + bad)) -eq 0 ]; then
    [ "$status" -eq 0 ] && good=1 || bad=1
  elif [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
    bad=1
  elif [ "$bad" -ne 0 ]; then
    status=1
  fi
  passed=$((passed + good)) failed=$((failed + bad))
  if [ "$status" -ne 0 ]; then
    word=FAILED
    explain "$log"
    failed_names+=("  $name" "$(names_of_failed "$log")")
  fi
  rows+=("$(printf '  %-28s %-7s %5d s  %5d passed, %d failed' \
    "$name" "$word" $((SECONDS - start)) "$good" "$bad")")
  printf '   %s, %d s\n' "$word" $((SECONDS - start))
  return "$status"
}

# Lists the skipped tests by name: nothing is skipped silently.
not_run() {
  local count
  count=$(sed -nE 's/^test result:.*; ([0-9]+) ignored.*/\1/p' "$logs"/tests.log 2>/dev/null |
    awk '{n += $1} END {print n + 0}')
  if [ "$count" -ne 0 ]; then
    echo "$count ignored tests; each says why where it stands:"
    grep -hE '^test .* \.\.\. ignored' "$logs"/tests.log
  fi
  grep -hE '^skip|[1-9][0-9]* skipped' "$@" 2>/dev/null
}

# find_oracle: sets HAPROXY to the HAProxy to compare with. If the archive does
# not respond it is the system's, and the last line of the run says so.
find_oracle() {
  [ -z "${HAPROXY:-}" ] || return 0
  local status=0
  step "oracle" scripts/oracle || status=$?
  HAPROXY=$(tail -n 1 "$logs/oracle.log")
  # 3: the archive does not respond, which is not the source tree's fault.
  if [ "$status" -ne 0 ]; then
    HAPROXY=/usr/sbin/haproxy
    remark="HAProxy 3.2 could not be had from Debian's archive ($logs/oracle.log): "
    remark+="$("$HAPROXY" -v | head -n 1) judged alone"
    [ "$status" -ne 3 ] || failed=$((failed - 1)) failed_names=("${failed_names[@]::${#failed_names[@]}-2}")
  fi
  export HAPROXY
}

# summary LOG...: the table, what failed, the totals, and the exit status.
summary() {
  {
    printf '%s: %d passed, %d failed\n' "$(basename "$0")" "$passed" "$failed"
    [ ${#failed_names[@]} -eq 0 ] || printf '%s\n' "${failed_names[@]}"
  } >"$outcome"
  echo
  printf '%s\n' "${rows[@]}"
  not_run "$@"
  [ ${#failed_names[@]} -eq 0 ] || printf '%s\n' '' 'Failed:' "${failed_names[@]}"
  printf '\n%d minutes %d seconds\n' $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60))
  printf '%d passed, %d failed\n' "$passed" "$failed"
  [ -z "$remark" ] || echo "$remark"
  [ "$failed" -eq 0 ]
}

# The only build for tests: slightly optimised, with overflow checks and
# assertions. Unit tests, end-to-end tests and `make run` share it.
export BALLAST=$PWD/target/debug/ballast ORIGIN=$PWD/target/debug/ballast-origin
export LOAD=$PWD/target/debug/ballast-load
# More connections than a login shell may open by default, and no more than tests
# need: HAProxy 2.6 sets aside memory for each descriptor that it may open.
descriptors=$(ulimit -Hn)
[ "$descriptors" != unlimited ] && [ "$descriptors" -lt 20000 ] || descriptors=20000
ulimit -n "$descriptors" 2>/dev/null || true
