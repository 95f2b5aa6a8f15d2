import type { CommandNode } from "./list-nodes.ts";

/** Works in the bash of macOS (3.2), which has no associative arrays. */
export function toBashScript(nodes: readonly CommandNode[]): string {
  return `# Completion of longwatch for bash.
_longwatch_at() {
  case "$1" in
${nodes.map(toCase).join("\n")}
    *) return 1 ;;
  esac
}
_longwatch() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD - 1]}"
  local at="" words options valued i
  _longwatch_at ""
  for ((i = 1; i < COMP_CWORD; i++)); do
    if _longwatch_at "\${at:+$at }\${COMP_WORDS[i]}"; then at="\${at:+$at }\${COMP_WORDS[i]}"; fi
  done
  COMPREPLY=()
  case " $valued " in *" $before "*) return ;; esac
  if [[ $cur == -* || -z $words ]]; then words="$options"; fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _longwatch longwatch
`;
}

/** Names of commands and options have no character that is special in double quotes. */
function toCase({ path, words, options }: CommandNode): string {
  const join = (named: readonly { readonly name: string }[]) => named.map(({ name }) => name).join(" ");
  const valued = options.filter(({ takesValue }) => takesValue);
  return `    "${path}") words="${join(words)}" options="${join(options)}" valued="${join(valued)}" ;;`;
}
