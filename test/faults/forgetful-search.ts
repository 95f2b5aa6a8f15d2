/**
 * Returns a change for `openChangingPlatform`: leaves out every third row of a flat search's page the first time it
 * is requested, or, with `isSteady`, a third of the events from `from` (epoch ms) on in every answer. A search of one
 * rule is unchanged.
 */
export function createForgetfulSearch({ isSteady = false, from = (): number => 0 } = {}) {
  const asked = new Set<string>();
  let forgotten = 0;
  return {
    change: (body: string, path: string, request: string): string => {
      if (!path.endsWith("/search") || request.includes("ruleId") || (!isSteady && asked.has(request)))
        return body;
      asked.add(request);
      const page = JSON.parse(body) as { rows: { logId: string; timestamp: number }[] | null };
      const rows = page.rows ?? [];
      const isShown = ({ logId, timestamp }: (typeof rows)[number], index: number) =>
        timestamp < from() || (isSteady ? Number.parseInt(logId.slice(0, 2), 16) : index) % 3 !== 0;
      const shown = rows.filter(isShown);
      forgotten += rows.length - shown.length;
      return JSON.stringify({ ...page, rows: shown });
    },
    forgotten: () => forgotten,
  };
}
