import { Group } from "@mantine/core";
import { QuietButton } from "./quiet-button.tsx";

interface Props<Name extends string> {
  readonly label: string;
  readonly names: readonly Name[];
  readonly words?: Partial<Readonly<Record<Name, string>>>;
  readonly chosen: readonly string[];
  readonly onToggle: (name: Name) => void;
}

/** Names of which several can be chosen, or one at a time, as the caller decides. */
export function Choices<Name extends string>({ label, names, words = {}, chosen, onToggle }: Props<Name>) {
  return (
    <Group gap={4} role="group" aria-label={label}>
      {names.map((name) => (
        <QuietButton
          key={name}
          fw={400}
          c={chosen.includes(name) ? "var(--lw-text)" : "dimmed"}
          word={words[name] ?? name}
          isPressed={chosen.includes(name)}
          onClick={() => onToggle(name)}
        />
      ))}
    </Group>
  );
}
