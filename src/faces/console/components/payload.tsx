/** Text of events, and values that can be filtered for. */
import { createContext, Fragment, type MouseEvent, type ReactNode, useContext } from "react";
import type { FieldName } from "#model/fields.ts";
import { FILTER_KINDS, type FilterKind, filterEvents, kindFor, type PageEvents } from "../state/filters.ts";
import { NO_VALUE, wordField } from "../style/words.ts";
import filterValueClasses from "./filter-value.module.css";
import payloadClasses from "./payload.module.css";

/** Everything that moves, hides or reorders text. It is spelled out instead of shown. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{DI}]/gu;
const NAMES: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0" };

function spell(character: string): string {
  return NAMES[character] ?? `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

interface Props {
  /** Null shows nothing. */
  readonly text: string | null;
  readonly mark?: string;
  readonly none?: string;
  /** The text is a sentence and not a payload. */
  readonly prose?: boolean;
  /** It is the name of what is shown. */
  readonly bold?: boolean;
  /** The words before the text. */
  readonly say?: string;
}

/**
 * Text of a request, as text. Control characters are spelled out and marked; the parts that equal `mark` are marked
 * too. The text wraps anywhere and keeps its own direction.
 */
export function Payload({ text, mark = "", none = "(none)", prose = false, bold = false, say }: Props) {
  if (text === null) return null;
  const shown =
    text === "" ? (
      <span className={payloadClasses["none"]}>{none}</span>
    ) : (
      <bdi className={prose ? payloadClasses["prose"] : payloadClasses["text"]}>{markParts(text, mark)}</bdi>
    );
  return (
    <>
      {say}
      {bold ? <b>{shown}</b> : shown}
    </>
  );
}

function markParts(text: string, mark: string): ReactNode {
  if (mark === "") return spellOut(text);
  const [lower, sought] = [text.toLowerCase(), mark.toLowerCase()];
  // Lowering changes the length of some texts; then the places would not fit.
  if (lower.length !== text.length) return spellOut(text);
  const parts: ReactNode[] = [];
  let from = 0;
  for (let at = lower.indexOf(sought); at >= 0 && parts.length < 200; at = lower.indexOf(sought, from)) {
    const end = at + sought.length;
    parts.push(
      <Fragment key={at}>
        {spellOut(text.slice(from, at))}
        <mark className={payloadClasses["mark"]}>{spellOut(text.slice(at, end))}</mark>
      </Fragment>,
    );
    from = end;
  }
  return [...parts, <Fragment key="rest">{spellOut(text.slice(from))}</Fragment>];
}

function spellOut(text: string): ReactNode {
  const found = [...text.matchAll(UNSEEN)];
  if (found.length === 0) return text;
  const parts: ReactNode[] = [];
  let from = 0;
  for (const { 0: character, index } of found) {
    parts.push(
      <Fragment key={index}>
        {text.slice(from, index)}
        <span className={payloadClasses["unseen"]}>{spell(character)}</span>
      </Fragment>,
    );
    from = index + character.length;
  }
  return [...parts, <Fragment key="end">{text.slice(from)}</Fragment>];
}

/** Set by a page that is about some events only, such as those of an alert. */
export const PageEventsContext = createContext<PageEvents | undefined>(undefined);

interface FilterValueProps {
  readonly field: FieldName;
  readonly value: string;
  /** Shown instead of the value itself. */
  readonly children?: ReactNode;
  /** In dense rows: the buttons are shown to a mouse and the keyboard only. */
  readonly dense?: boolean;
  /** The value is a part of the field's: its filter is "contains". */
  readonly contains?: boolean;
  readonly className?: string | undefined;
}

const BUTTONS = [
  ["+", "Filter for"],
  ["−", "Filter out"],
] as const;

/**
 * A value that can be filtered for and filtered out, the same on every page. A click on the value includes it, a click
 * with Alt excludes it. On the explorer the filter changes the address; elsewhere it opens the explorer.
 */
export function FilterValue({ field, value, children, dense = false, ...props }: FilterValueProps) {
  const { contains = false, className = "" } = props;
  const described = `${wordField(field)} ${value === "" ? NO_VALUE : value}`;
  const include = contains ? "has" : kindFor(field, value);
  const exclude = FILTER_KINDS[include].opposite;
  const about = useContext(PageEventsContext);
  const filter = (event: MouseEvent, kind: FilterKind) => {
    event.stopPropagation();
    event.preventDefault();
    filterEvents({ kind, field, value }, about);
  };
  return (
    <span className={`${filterValueClasses["value"]} ${className}`} data-dense={dense || undefined}>
      <button
        type="button"
        className={`lw-plain ${filterValueClasses["text"]}`}
        title={`Filter for ${described.slice(0, 300)} (Alt: filter out)`}
        onClick={(event) => filter(event, event.altKey ? exclude : include)}
      >
        {children ?? (
          <Payload text={field === "network" && /^\d+$/.test(value) ? `AS${value}` : value} none={NO_VALUE} />
        )}
      </button>
      <span className={filterValueClasses["buttons"]}>
        {BUTTONS.map(([sign, word]) => (
          <button
            key={sign}
            type="button"
            className="lw-plain"
            data-sign={sign}
            aria-label={`${word} ${described}`}
            title={word}
            onClick={(event) => filter(event, sign === "+" ? include : exclude)}
          />
        ))}
      </span>
    </span>
  );
}
