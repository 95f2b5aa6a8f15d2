import type { ReactNode } from "react";
import classes from "./panel.module.css";

interface Props {
  readonly title: ReactNode;
  /** The span of the numbers, and whether they are complete. */
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
  /** The body touches the borders: tables and charts. */
  readonly flush?: boolean;
  readonly children: ReactNode;
}

/** A part of a page with a heading. */
export function Panel({ title, about, actions, flush = false, children }: Props) {
  return (
    <section className={classes["panel"]}>
      <header className={classes["head"]}>
        <h2 className={classes["title"]}>{title}</h2>
        {about === undefined ? null : <div className={classes["about"]}>{about}</div>}
        {actions === undefined ? null : <div className={classes["actions"]}>{actions}</div>}
      </header>
      <div className={flush ? classes["flush"] : classes["body"]}>{children}</div>
    </section>
  );
}
