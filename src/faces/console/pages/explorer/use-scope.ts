import { useEffect, useMemo, useRef, useState } from "react";
import type { EventScope } from "../../api/search.ts";
import { readFilters } from "../../state/filters.ts";
import { useSpan } from "../../state/span.ts";
import { useUrlState } from "../../state/url-state.ts";
import { useZones } from "../../state/zones.ts";

/**
 * The scope of the page. A span that ends now ends where it was last moved to, so that rows do not move under the reader.
 * `newer` is the time after that, in which new events may be; null for a span with fixed ends.
 */
export function useExplorerScope() {
  const { params } = useUrlState();
  const span = useSpan();
  const { zones } = useZones();
  const read = readFilters(params);
  const filterKey = JSON.stringify([read.filters, read.query]);
  const { filters, query } = useMemo(() => read, [filterKey]);
  const zoneKey = zones.map(({ id }) => id).join();
  const shown = useMemo(() => zones, [zoneKey]);
  const [pinned, pin] = useState(span.toMs);
  const isNew = useRef("");
  const asked = `${filterKey} ${zoneKey} ${span.name}`;
  useEffect(() => {
    if (isNew.current !== asked) pin(span.toMs);
    isNew.current = asked;
  }, [asked, span.toMs]);
  const isMoving = span.name !== null;
  const toMs = isMoving ? Math.min(pinned, span.toMs) : span.toMs;
  const fromMs = isMoving ? toMs - (span.toMs - span.fromMs) : span.fromMs;
  const scope = useMemo<EventScope>(
    () => ({ zones: shown, fromMs, toMs, query, filters }),
    [shown, fromMs, toMs, query, filters],
  );
  return {
    scope,
    newer: isMoving && span.toMs > toMs ? { ...scope, fromMs: toMs, toMs: span.toMs } : null,
    showNewer: () => pin(span.toMs),
  };
}
