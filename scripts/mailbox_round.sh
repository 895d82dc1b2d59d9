#!/usr/bin/env bash
# One round of a run that is answered by hand, on a machine that keeps nothing between two commands.
# Usage: scripts/mailbox_round.sh BUNDLE.tgz NAME [KEY=VALUE …]
# Unpacks the run from BUNDLE and goes on with it, or begins it where there is no BUNDLE (KEY=VALUE
# are then those of `kopt run`, later on those of `kopt resume`): judges what was answered, lays the
# next prompts out, and packs the run up again. Elsewhere, between two rounds:
#   tar xzf run.tgz; write NAME/mailbox/answers/<id>.md, as README.md beside it says, for each of
#   NAME/mailbox/prompts/<id>.md; tar czf run.tgz NAME .caches
# PACKED is where the run is packed to (BUNDLE itself), LIMIT_S the seconds of a round (no limit;
# what is under way then is done again), PYTHON the interpreter. Verdicts and baselines that the
# machine's cache holds travel in .caches, so that another one need not measure them again.
# The exit status is kopt's: 75 while answers are awaited, 0 once the run is over.
set -euo pipefail
usage="usage: $0 BUNDLE.tgz NAME [KEY=VALUE …]"
bundle=${1:?$usage} name=${2:?$usage}
shift 2
packed=${PACKED:-$bundle}
cache=${KOPT_CACHE_DIR:-$HOME/.cache/kopt}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

kopt=("${PYTHON:-python3}" -m kopt)
[ -z "${LIMIT_S:-}" ] || kopt=(timeout -s INT -k 20 "$LIMIT_S" "${kopt[@]}")
if [ -e "$bundle" ]; then
  tar -xzf "$bundle" -C "$work"
  mkdir -p "$cache"
  [ ! -d "$work/.caches" ] || cp -a "$work/.caches/." "$cache/"
  what=(resume "$work/$name")
else
  what=(run programmer=mailbox programmer.wait_s=0 out="$work" name="$name")
fi
status=0
"${kopt[@]}" "${what[@]}" "$@" || status=$?
[ -d "$work/$name" ] || exit "$status"

rm -rf "$work/.caches"
mkdir "$work/.caches"
for kind in verdict baseline; do
  [ ! -d "$cache/$kind" ] || cp -a "$cache/$kind" "$work/.caches/$kind"
done
tar -czf "$packed.part" -C "$work" "$name" .caches
mv "$packed.part" "$packed"
if [ -d "$work/$name/mailbox/prompts" ]; then
  find "$work/$name/mailbox/prompts" -name '*.md' -printf 'open: %f\n' | sort
fi
exit "$status"
