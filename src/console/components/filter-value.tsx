import type { ReactNode } from "react";
import { Icon } from "../look/icons.tsx";
import { DIMENSIONS, type Dimension, NO_VALUE } from "../look/words.ts";
import { useFilterLink } from "../state/filters.ts";
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
}

/**
 * A value that can be filtered for and filtered out, the same on every page. A click on the value includes it, a click
 * with Alt excludes it. On the explorer the filter changes the address; elsewhere it opens the explorer.
 */
export function FilterValue({ field, value, children, dense = false, contains = false }: Props) {
  const filter = useFilterLink();
  const name = `${DIMENSIONS[field]} ${value === "" ? NO_VALUE : value}`;
  const stop = (act: () => void) => (event: { stopPropagation: () => void; preventDefault: () => void }) => {
    event.stopPropagation();
    event.preventDefault();
    act();
  };
  return (
    <span className={classes["value"]} data-dense={dense || undefined}>
      <button
        type="button"
        className={classes["text"]}
        title={`Filter for ${name.slice(0, 300)} (Alt: filter out)`}
        onClick={(event) =>
          stop(() => filter(field, value, contains ? "has" : event.altKey ? "not" : "is"))(event)
        }
      >
        {children ?? (
          <Payload text={field === "asn" && /^\d+$/.test(value) ? `AS${value}` : value} none={NO_VALUE} />
        )}
      </button>
      <span className={classes["buttons"]}>
        <button
          type="button"
          className={classes["button"]}
          aria-label={`Filter for ${name}`}
          title="Filter for"
          onClick={stop(() => filter(field, value, contains ? "has" : "is"))}
        >
          <Icon name="plus" size={12} />
        </button>
        {contains ? null : (
          <button
            type="button"
            className={classes["button"]}
            aria-label={`Filter out ${name}`}
            title="Filter out"
            onClick={stop(() => filter(field, value, "not"))}
          >
            <Icon name="minus" size={12} />
          </button>
        )}
      </span>
    </span>
  );
}
