import { Fragment, type ReactNode } from "react";
import classes from "./payload.module.css";

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
      <span className={classes["none"]}>{none}</span>
    ) : (
      <bdi className={prose ? classes["prose"] : classes["text"]}>{markParts(text, mark)}</bdi>
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
        <mark className={classes["mark"]}>{spellOut(text.slice(at, end))}</mark>
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
        <span className={classes["unseen"]}>{spell(character)}</span>
      </Fragment>,
    );
    from = index + character.length;
  }
  return [...parts, <Fragment key="end">{text.slice(from)}</Fragment>];
}
