import type { CommandNode } from "./list-nodes.ts";

export function toFishScript(nodes: readonly CommandNode[]): string {
  const paths = nodes.flatMap(({ path }) => (path === "" ? [] : [quote(path)]));
  return `# Completion of longwatch for fish.
function __longwatch_is
  set -l at ''
  for word in (commandline -opc)[2..-1]
    set -l next (string trim -- "$at $word")
    if contains -- $next ${paths.join(" ")}
      set at $next
    end
  end
  test "$at" = "$argv[1]"
end
complete -c longwatch -e
${nodes.flatMap(toLines).join("\n")}
`;
}

function toLines({ path, words, options }: CommandNode): string[] {
  const start = `complete -c longwatch -n ${quote(`__longwatch_is '${path}'`)}`;
  return [
    ...words.map(({ name, description }) => `${start} -f -a ${quote(name)} -d ${quote(description)}`),
    ...options.map(({ name, description, takesValue }) => {
      const kind = takesValue ? " -r" : "";
      return `${start} -l ${name.replace(/^--/, "")}${kind} -d ${quote(description)}`;
    }),
  ];
}

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", String.raw`\'`)}'`;
}
