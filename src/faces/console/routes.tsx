import { type ComponentType, lazy } from "react";
import type { Scope } from "#model/kinds.ts";
import type { IconName } from "./look/icons.tsx";
import OverviewPage from "./pages/overview.tsx";

export interface PageRoute {
  /** A pattern of wouter. The first route that fits is shown. */
  readonly path: string;
  readonly title: string;
  /** Set for pages of the navigation: the icon, and the letter after `g`. */
  readonly nav?: { readonly icon: IconName; readonly key: string };
  /** Readers without this scope do not see the page. */
  readonly scope?: Scope;
  readonly page: ComponentType;
}

/**
 * Every page, one line each. A page is a default export without properties; README.md says how one is built. The overview
 * is a part of the first script, and so are the components that it shares with other pages.
 */
export const ROUTES: readonly PageRoute[] = [
  {
    path: "/",
    title: "Overview",
    nav: { icon: "overview", key: "o" },
    page: OverviewPage,
  },
  {
    path: "/explorer",
    title: "Explorer",
    nav: { icon: "explorer", key: "e" },
    page: lazy(() => import("./pages/explorer.tsx")),
  },
  {
    path: "/alerts",
    title: "Alerts",
    nav: { icon: "alerts", key: "a" },
    page: lazy(() => import("./pages/alerts.tsx")),
  },
  {
    path: "/silences",
    title: "Silences",
    nav: { icon: "silences", key: "s" },
    page: lazy(() => import("./pages/silences.tsx")),
  },
  {
    path: "/rules",
    title: "Rules",
    nav: { icon: "rules", key: "r" },
    page: lazy(() => import("./pages/rules.tsx")),
  },
  {
    path: "/coverage",
    title: "Coverage",
    nav: { icon: "coverage", key: "c" },
    page: lazy(() => import("./pages/coverage.tsx")),
  },
  {
    path: "/operations",
    title: "Operations",
    nav: { icon: "operations", key: "p" },
    page: lazy(() => import("./pages/operations.tsx")),
  },
  { path: "/rules/:zone", title: "Rule", page: lazy(() => import("./pages/rule.tsx")) },
  { path: "/alerts/:id", title: "Alert", page: lazy(() => import("./pages/alert.tsx")) },
];
