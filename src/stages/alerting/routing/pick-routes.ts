import type { Subject } from "#model/subject.ts";
import { matchesSubject } from "#model/subject.ts";
import type { Route } from "./routing.ts";

/**
 * Returns the routes of a subject, as Alertmanager does: children in order, the first that matches and, while
 * `continue` is set, the next that match. If none of a route's children matches, the route itself applies. The root
 * applies if no other route does, so the result has at least one route. `visit` is called for every route that is
 * tried.
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
