import { Link, useRoute } from "wouter";
import { hasScope, useSession } from "../api/session.ts";
import { useStatus } from "../api/status.ts";
import { Icon } from "../look/icons.tsx";
import { type PageRoute, ROUTES } from "../routes.tsx";
import { usePageLink } from "../state/url-state.ts";
import classes from "./navigation.module.css";

function usePages(): readonly PageRoute[] {
  const session = useSession();
  return ROUTES.filter(
    ({ nav, scope }) => nav !== undefined && (scope === undefined || hasScope(session, scope)),
  );
}

/** The pages, at the left of wide screens. */
export function Navigation() {
  const session = useSession();
  return (
    <nav className={classes["nav"]} aria-label="Pages">
      {usePages().map((route) => (
        <Entry key={route.path} route={route} className={classes["entry"]} />
      ))}
      <div className={classes["version"]}>
        Longwatch {session.version}
        <br />
        <a href="/docs" target="_blank" rel="noreferrer">
          API
        </a>
      </div>
    </nav>
  );
}

/** The same pages, at the bottom of narrow screens. */
export function TabBar() {
  return (
    <nav className={classes["tabs"]} aria-label="Pages">
      {usePages().map((route) => (
        <Entry key={route.path} route={route} className={classes["tab"]} />
      ))}
    </nav>
  );
}

function Entry({
  route: { path, title, nav },
  className,
}: {
  readonly route: PageRoute;
  readonly className: string | undefined;
}) {
  const link = usePageLink();
  const [isExact] = useRoute(path);
  const [isBelow] = useRoute(`${path}/*`);
  const isHere = isExact || (path !== "/" && isBelow);
  const firing = useStatus().data?.alertsFiring ?? 0;
  return (
    <Link href={link(path)} className={className ?? ""} aria-current={isHere ? "page" : undefined}>
      {nav === undefined ? null : <Icon name={nav.icon} size={18} />}
      <span>{title}</span>
      {path === "/alerts" && firing > 0 ? <span className={classes["count"]}>{firing}</span> : null}
    </Link>
  );
}
