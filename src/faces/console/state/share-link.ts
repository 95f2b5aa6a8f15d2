import { toUrlTime } from "./span.ts";
import { type Params, withParams } from "./url-state.ts";

/** The address of this page with fixed times, so that somebody else sees the same. */
export function shareLink(
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  params: Params = {},
): string {
  const { origin, pathname, search } = globalThis.location;
  const query = withParams(search, { span: null, from: toUrlTime(fromMs), to: toUrlTime(toMs), ...params });
  return `${origin}${pathname}?${query}`;
}
