import classes from "./choices.module.css";

interface Props<Name extends string> {
  readonly label: string;
  readonly names: readonly Name[];
  readonly words?: Partial<Readonly<Record<Name, string>>>;
  readonly chosen: readonly string[];
  readonly onToggle: (name: Name) => void;
  /** Without borders: the only choice of its panel. */
  readonly isPlain?: boolean;
}

/** Names of which several can be chosen, or one at a time, as the caller decides. */
export function Choices<Name extends string>({ label, names, words = {}, ...props }: Props<Name>) {
  const { chosen, onToggle, isPlain = false } = props;
  return (
    <div className={classes["choices"]} role="group" aria-label={label} data-plain={isPlain || undefined}>
      {names.map((name) => (
        <button
          key={name}
          type="button"
          className="lw-plain"
          aria-pressed={chosen.includes(name)}
          onClick={() => onToggle(name)}
        >
          {words[name] ?? name}
        </button>
      ))}
    </div>
  );
}
