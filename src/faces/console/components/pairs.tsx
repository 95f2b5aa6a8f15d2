import { Fragment, type ReactNode } from "react";

export type Pair = readonly [name: ReactNode, value: ReactNode];

/** Names and values, a pair in each line. */
export function Pairs({ of }: { readonly of: readonly Pair[] }) {
  return (
    <dl className="lw-pairs">
      {of.map(([name, value], index) => (
        <Fragment key={`${index}`}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
