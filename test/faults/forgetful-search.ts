/**
 * For `openChangingPlatform`: leaves out every third row of a flat search's page the first time it is asked for. A
 * search of one rule is left as it is.
 */
export function createForgetfulSearch() {
  const asked = new Set<string>();
  let forgotten = 0;
  return {
    change: (body: string, path: string, request: string): string => {
      if (!path.endsWith("/search") || request.includes("ruleId") || asked.has(request)) return body;
      asked.add(request);
      const page = JSON.parse(body) as { rows: unknown[] | null };
      const rows = page.rows ?? [];
      const shown = rows.filter((_, index) => index % 3 !== 0);
      forgotten += rows.length - shown.length;
      return JSON.stringify({ ...page, rows: shown });
    },
    forgotten: () => forgotten,
  };
}
