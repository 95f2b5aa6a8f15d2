import type { MouseEvent, ReactNode } from "react";
import { DIMENSIONS, type Dimension, NO_VALUE } from "../look/words.ts";
import { type FilterKind, filterEvents } from "../state/filters.ts";
import classes from "./filter-value.module.css";
import { Payload } from "./payload.tsx";

interface Props {
  readonly field: Dimension;
  readonly value: string;
  /** Shown instead of the value itself. */
  readonly children?: ReactNode;
  /** In dense rows: the buttons are shown to a mouse and the keyboard only. */
  readonly dense?: boolean;
  /** The value is a part of the dimension: its filter is "contains", and it cannot be filtered out. */
  readonly contains?: boolean;
  readonly className?: string | undefined;
}

/**
 * A value that can be filtered for and filtered out, the same on every page. A click on the value includes it, a click
 * with Alt excludes it. On the explorer the filter changes the address; elsewhere it opens the explorer.
 */
export function FilterValue({
  field,
  value,
  children,
  dense = false,
  contains = false,
  className = "",
}: Props) {
  const name = `${DIMENSIONS[field]} ${value === "" ? NO_VALUE : value}`;
  const include = contains ? "has" : "is";
  const filter = (event: MouseEvent, kind: FilterKind) => {
    event.stopPropagation();
    event.preventDefault();
    filterEvents(field, value, kind);
  };
  return (
    <span className={`${classes["value"]} ${className}`} data-dense={dense || undefined}>
      <button
        type="button"
        className={classes["text"]}
        title={`Filter for ${name.slice(0, 300)} (Alt: filter out)`}
        onClick={(event) => filter(event, event.altKey && !contains ? "not" : include)}
      >
        {children ?? (
          <Payload text={field === "asn" && /^\d+$/.test(value) ? `AS${value}` : value} none={NO_VALUE} />
        )}
      </button>
      <span className={classes["buttons"]}>
        <button
          type="button"
          className={classes["for"]}
          aria-label={`Filter for ${name}`}
          title="Filter for"
          onClick={(event) => filter(event, include)}
        />
        {contains ? null : (
          <button
            type="button"
            className={classes["out"]}
            aria-label={`Filter out ${name}`}
            title="Filter out"
            onClick={(event) => filter(event, "not")}
          />
        )}
      </span>
    </span>
  );
}
