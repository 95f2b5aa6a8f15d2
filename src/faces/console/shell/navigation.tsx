import { Box, Stack } from "@mantine/core";
import { Link, useRoute } from "wouter";
import { useSession } from "../api/session.ts";
import { useStatus } from "../api/status.ts";
import { Icon } from "../look/icons.tsx";
import { NAVIGATION } from "../routes.tsx";
import { usePageLink } from "../state/url-state.ts";
import classes from "./navigation.module.css";

/** The pages, at the left of wide screens. */
export function Navigation() {
  const { version } = useSession();
  return (
    <Stack component="nav" gap={2} h="100%" p={8} aria-label="Pages">
      <Entries className={classes["entry"]} />
      <Box mt="auto" px={10} py={8} fz={12} className="lw-dim">
        Longwatch {version}
        <br />
        <a href="/docs" target="_blank" rel="noreferrer">
          API
        </a>
      </Box>
    </Stack>
  );
}

/** The same pages, at the bottom of narrow screens. */
export function TabBar() {
  return (
    <nav className={classes["tabs"]} aria-label="Pages">
      <Entries className={classes["tab"]} />
    </nav>
  );
}

function Entries({ className = "" }: { readonly className: string | undefined }) {
  return NAVIGATION.map((route) => <Entry key={route.path} {...route} className={className} />);
}

type EntryProps = (typeof NAVIGATION)[number] & { readonly className: string };

function Entry({ path, title, nav, className }: EntryProps) {
  const link = usePageLink();
  const [isExact] = useRoute(path);
  const [isBelow] = useRoute(`${path}/*`);
  const isHere = isExact || (path !== "/" && isBelow);
  const firing = useStatus().data?.alertsFiring ?? 0;
  return (
    <Link href={link(path)} className={className} aria-current={isHere ? "page" : undefined}>
      <Icon name={nav.icon} size={18} />
      <span>{title}</span>
      {path === "/alerts" && firing > 0 ? <span className={classes["count"]}>{firing}</span> : null}
    </Link>
  );
}
