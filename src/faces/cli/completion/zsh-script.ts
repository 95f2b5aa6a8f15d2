import type { CommandNode } from "./list-nodes.ts";

/** Can be sourced, or be a file `_longwatch` of the function path. */
export function toZshScript(nodes: readonly CommandNode[]): string {
  return `#compdef longwatch
# Completion of longwatch for zsh.
_longwatch_at() {
  case "$1" in
${nodes.map(toCase).join("\n")}
    *) return 1 ;;
  esac
}
_longwatch() {
  local at="" word
  local -a below flags valued
  _longwatch_at ""
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if _longwatch_at "\${at:+$at }$word"; then at="\${at:+$at }$word"; fi
  done
  if (( \${valued[(Ie)\${words[CURRENT-1]}]} )); then
    _files
  elif [[ $PREFIX == -* || \${#below} -eq 0 ]]; then
    _describe -o option flags
  else
    _describe command below
  fi
}
if [[ \${funcstack[1]} == _longwatch ]]; then _longwatch "$@"; else compdef _longwatch longwatch; fi
`;
}

function toCase({ path, words, options }: CommandNode): string {
  const describe = (named: readonly { readonly name: string; readonly description: string }[]) =>
    named.map(({ name, description }) => quote(`${name}:${description}`)).join(" ");
  const valued = options.filter(({ takesValue }) => takesValue).map(({ name }) => quote(name));
  return `    "${path}") below=(${describe(words)}) flags=(${describe(options)}) valued=(${valued.join(" ")}) ;;`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
