import { Box, Group } from "@mantine/core";
import type { ReactNode } from "react";
import { useIsDown } from "../api/status.ts";
import classes from "./panel.module.css";
import { type QueryProps, QueryView } from "./states.tsx";

interface HeadProps {
  readonly title: ReactNode;
  /** The span of the numbers, and whether they are complete. */
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
}

interface Props extends HeadProps {
  /** The body touches the borders: tables and charts. */
  readonly flush?: boolean;
  readonly children: ReactNode;
}

/** The time of numbers that are read again and again: `now`, while the service answers. */
export function Now() {
  return useIsDown() ? "at the last answer" : "now";
}

/** A part of a page with a heading. */
export function Panel({ title, about, actions, flush = false, children }: Props) {
  return (
    <section className="lw-panel">
      <header className={classes["head"]}>
        <h2 className={classes["title"]}>{title}</h2>
        {about === undefined ? null : <div className="lw-note">{about}</div>}
        <Group gap={4} ml="auto">
          {actions}
        </Group>
      </header>
      <Box {...(flush ? { pb: 4 } : { pt: 4, px: 12, pb: 12 })}>{children}</Box>
    </section>
  );
}

type QueryPanelProps<Data> = HeadProps & QueryProps<Data> & { readonly title: string };

/** A part of a page that shows a query. What is asked for is called as the panel is, if it has no other words. */
export function QueryPanel<Data>({ title, about, actions, ...shown }: QueryPanelProps<Data>) {
  return (
    <Panel title={title} about={about} actions={actions} flush>
      <QueryView asking={`the ${title.toLowerCase()}`} {...shown} />
    </Panel>
  );
}
