/** State that is in the address. */
import { useCallback } from "react";
import { useLocation, useSearch } from "wouter";

/** Parameters that stay when the reader goes to another page. */
const KEPT = ["zone", "span", "from", "to"];

export type Params = Readonly<Record<string, string | readonly string[] | null>>;

/** Returns the address's query with these parameters replaced; null removes one. */
export function withParams(search: string, changes: Params): string {
  const params = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    params.delete(name);
    for (const one of value === null ? [] : [value].flat()) params.append(name, one);
  }
  return readable(params);
}

export function toAddress(path: string, query: string): string {
  return query === "" ? path : `${path}?${query}`;
}

/** Colons, slashes and commas need no escape in a query, and a link that people paste should be readable. */
function readable(params: URLSearchParams): string {
  return params
    .toString()
    .replaceAll("%3A", ":")
    .replaceAll("%2F", "/")
    .replaceAll("%2C", ",")
    .replaceAll("%40", "@");
}

interface UrlState {
  readonly params: URLSearchParams;
  /** Changes the query of this page. The back button undoes it, unless it replaces the entry. */
  readonly change: (changes: Params, options?: { readonly replace?: boolean }) => void;
}

/** The state of the page is its address: filters, span, grouping and the open row. */
export function useUrlState(): UrlState {
  const search = useSearch();
  const [path, navigate] = useLocation();
  const change = useCallback<UrlState["change"]>(
    (changes, options) => {
      // Two changes in one event must not undo each other, so the address is read again.
      const next = withParams(globalThis.location.search, changes);
      navigate(toAddress(path, next), { replace: options?.replace ?? false });
    },
    [path, navigate],
  );
  return { params: new URLSearchParams(search), change };
}

/** Returns the address of another page with the zone and span of the query `search`. */
export function toPageLink(search: string, path: string, params: Params = {}): string {
  const kept = new URLSearchParams([...new URLSearchParams(search)].filter(([name]) => KEPT.includes(name)));
  return toAddress(path, withParams(kept.toString(), params));
}

/** Returns a function that makes addresses of other pages with the zone and span of this one. */
export function usePageLink(): (path: string, params?: Params) => string {
  const search = useSearch();
  return (path, params) => toPageLink(search, path, params);
}

/** Returns the address of a rule's page. The rule is a parameter, because its id may be any text. */
export function useRuleLink(): (zoneId: number, ruleId: string) => string {
  const link = usePageLink();
  return (zoneId, ruleId) => link(`/rules/${zoneId}`, { rule: ruleId });
}
