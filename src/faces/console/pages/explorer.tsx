import { useState } from "react";
import type { EventRow } from "../api/search.ts";
import { EventDrawer } from "./explorer/event-drawer.tsx";
import { EventTable } from "./explorer/event-table.tsx";
import classes from "./explorer/explorer.module.css";
import { FilterBar } from "./explorer/filter-bar.tsx";
import { HistogramPanel } from "./explorer/histogram-panel.tsx";
import { TopValues } from "./explorer/top-values.tsx";
import { useExplorerScope } from "./explorer/use-scope.ts";

/** Page with one set of filters over a histogram, top lists and the events themselves. */
export default function ExplorerPage() {
  const { scope, newer, showNewer } = useExplorerScope();
  const [opened, open] = useState<EventRow | null>(null);
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Explorer</h1>
      <FilterBar scope={scope} />
      <HistogramPanel scope={scope} />
      <div className={classes["columns"]}>
        <TopValues scope={scope} />
        <EventTable scope={scope} newer={newer} onNewer={showNewer} opened={opened} onOpen={open} />
      </div>
      <EventDrawer event={opened} scope={scope} onClose={() => open(null)} />
    </div>
  );
}
