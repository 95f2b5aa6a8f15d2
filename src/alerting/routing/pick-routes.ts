import type { Subject } from "../../model/subject.ts";
import { matchesSubject } from "../../model/subject.ts";
import type { Route } from "./routing.ts";

/**
 * The routes that speak for a subject, as Alertmanager's tree has it: children in order, the first that matches and
 * after it, for as long as `continue` says so, the next; a route none of whose children matches speaks for itself. The
 * root takes what nobody else does. At least one. `visit` is called for every route that is tried.
 */
export function pickRoutes(
  root: Route,
  subject: Subject,
  visit?: (route: Route, isMatch: boolean) => void,
): readonly Route[] {
  const picked: Route[] = [];
  for (const child of root.routes) {
    const isMatch = matchesSubject(child.matchers, subject);
    visit?.(child, isMatch);
    if (!isMatch) continue;
    picked.push(...pickRoutes(child, subject, visit));
    if (!child.continue) break;
  }
  return picked.length > 0 ? picked : [root];
}
