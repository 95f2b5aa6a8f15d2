import { type ComponentType, lazy } from "react";
import OverviewPage from "./pages/overview.tsx";
import type { IconName } from "./style/icons.tsx";

export interface PageRoute {
  /** A pattern of wouter. The first route that fits is shown. */
  readonly path: string;
  readonly title: string;
  /** Set for pages of the navigation: the icon, and the letter after `g`. */
  readonly nav?: { readonly icon: IconName; readonly key: string };
  readonly page: ComponentType;
}

const Alert = lazy(() => import("./pages/alert.tsx"));
const Alerts = lazy(() => import("./pages/alerts.tsx"));
const Coverage = lazy(() => import("./pages/coverage.tsx"));
const Digest = lazy(() => import("./pages/digest.tsx"));
const Explorer = lazy(() => import("./pages/explorer.tsx"));
const Operations = lazy(() => import("./pages/operations.tsx"));
const Review = lazy(() => import("./pages/review.tsx"));
const Rule = lazy(() => import("./pages/rule.tsx"));
const Rules = lazy(() => import("./pages/rules.tsx"));
const Silences = lazy(() => import("./pages/silences.tsx"));

/**
 * Every page, one line each. A page is a default export without properties; README.md says how one is built. The overview
 * is a part of the first script, and so are the components that it shares with other pages.
 */
export const ROUTES: readonly PageRoute[] = [
  { path: "/", title: "Overview", nav: { icon: "overview", key: "o" }, page: OverviewPage },
  { path: "/explorer", title: "Explorer", nav: { icon: "explorer", key: "e" }, page: Explorer },
  { path: "/alerts", title: "Alerts", nav: { icon: "alerts", key: "a" }, page: Alerts },
  { path: "/silences", title: "Silences", nav: { icon: "silences", key: "s" }, page: Silences },
  { path: "/rules", title: "Rules", nav: { icon: "rules", key: "r" }, page: Rules },
  { path: "/review", title: "Review", nav: { icon: "check", key: "v" }, page: Review },
  { path: "/coverage", title: "Coverage", nav: { icon: "coverage", key: "c" }, page: Coverage },
  { path: "/digest", title: "Digest", nav: { icon: "digest", key: "d" }, page: Digest },
  { path: "/operations", title: "Operations", nav: { icon: "operations", key: "p" }, page: Operations },
  { path: "/rules/:zone", title: "Rule", page: Rule },
  { path: "/alerts/:id", title: "Alert", page: Alert },
];

export const NAVIGATION = ROUTES.flatMap(({ nav, ...route }) =>
  nav === undefined ? [] : [{ ...route, nav }],
);
