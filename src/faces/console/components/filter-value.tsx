import { createContext, type MouseEvent, type ReactNode, useContext } from "react";
import type { FieldName } from "#model/fields.ts";
import { NO_VALUE, wordField } from "../look/words.ts";
import { FILTER_KINDS, type FilterKind, filterEvents, kindFor, type PageEvents } from "../state/filters.ts";
import classes from "./filter-value.module.css";
import { Payload } from "./payload.tsx";

/** Set by a page that is about some events only, such as those of an alert. */
export const PageEventsContext = createContext<PageEvents | undefined>(undefined);

interface Props {
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
export function FilterValue({ field, value, children, dense = false, ...props }: Props) {
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
    <span className={`${classes["value"]} ${className}`} data-dense={dense || undefined}>
      <button
        type="button"
        className={`lw-plain ${classes["text"]}`}
        title={`Filter for ${described.slice(0, 300)} (Alt: filter out)`}
        onClick={(event) => filter(event, event.altKey ? exclude : include)}
      >
        {children ?? (
          <Payload text={field === "network" && /^\d+$/.test(value) ? `AS${value}` : value} none={NO_VALUE} />
        )}
      </button>
      <span className={classes["buttons"]}>
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
