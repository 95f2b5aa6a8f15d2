import type { ReactNode } from "react";
import { Empty } from "./states.tsx";

interface Props<One> {
  readonly of: readonly One[];
  /** Shown if there is no item. */
  readonly none?: ReactNode;
  /** Makes the row of an item, a list item with a key. */
  readonly children: (one: One) => ReactNode;
}

/** A list with a row for each item. */
export function Rows<One>({ of, none, children }: Props<One>) {
  if (of.length === 0 && none !== undefined) return <Empty>{none}</Empty>;
  return <ul className="lw-rows">{of.map((one) => children(one))}</ul>;
}
