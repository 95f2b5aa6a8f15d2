import type { ReactNode } from "react";

/** A value with the words before it. Without a value nothing is shown. */
export function Fact({ say, children }: { readonly say: string; readonly children: ReactNode }) {
  return children === null ? null : (
    <span>
      {say} <b>{children}</b>
    </span>
  );
}
