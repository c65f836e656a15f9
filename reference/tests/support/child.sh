#!/bin/sh
# A child for tests: takes Pi's arguments, notes them, and answers its prompt as the words in the task say.
here=${0%/*}
printf '%s\0' "$@" >"$here/journal/$$.part"
pwd >"$here/journal/$$.cwd"
mv "$here/journal/$$.part" "$here/journal/$$.argv"

IFS= read -r prompt || exit 0
printf '%s\n' "$prompt" >"$here/journal/$$.prompt"
id=$(printf '%s' "$prompt" | sed -n 's/^.*"id": *\("[^"]*"\|[0-9]*\).*$/"id":\1,/p')
task=$(printf '%s' "$prompt" | sed 's/^.*"message": *"\([^"]*\)".*$/\1/')

say() { printf '%s\n' "$1"; }
message() { # role-less end of an assistant message: text, stop reason, further fields
  say '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"'"$1"'"}],"api":"a","provider":"p","model":"m","usage":{"input":10,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":19,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0.25}},"stopReason":"'"$2"'"'"$3"',"timestamp":1}}'
}
settle() {
  say '{"type":"agent_end","messages":[],"willRetry":false}'
  say '{"type":"agent_settled","aborted":false}'
  cat >/dev/null
  exit 0
}

say '{'"$id"'"type":"response","command":"prompt","success":true,"data":{"disposition":"started"}}'
say '{"type":"agent_start"}'
say '{"type":"turn_start"}'
case $task in
*use-tools*)
  for file in one two three; do
    say '{"type":"tool_execution_start","toolCallId":"'$file'","toolName":"read","args":{"path":"'$file'.txt"}}'
    say '{"type":"tool_execution_end","toolCallId":"'$file'","toolName":"read","result":{"content":[]},"isError":false}'
  done
  ;;
esac
case $task in
*stubborn*) trap '' TERM ;;
esac
case $task in
*hang*)
  sleep 1000 &
  echo $! >"$here/journal/$$.hangs"
  while :; do wait; done
  ;;
*fail*)
  echo 'fatal: no key' >&2
  message '' error ',"errorMessage":"quota exceeded"'
  settle
  ;;
*die*)
  echo 'fatal: no key' >&2
  exit 9
  ;;
*)
  message "answer to $task" stop ''
  settle
  ;;
esac
