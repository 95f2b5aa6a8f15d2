import { Loader } from "@mantine/core";
import { Suspense } from "react";
import { Redirect, Route, Switch } from "wouter";
import { hasScope, useSessionQuery } from "./api/session.ts";
import { ProblemBox } from "./components/states.tsx";
import { ROUTES } from "./routes.tsx";
import { PageBoundary } from "./shell/page-boundary.tsx";
import { PageMissing } from "./shell/page-missing.tsx";
import { Shell } from "./shell/shell.tsx";
import { SignIn } from "./shell/sign-in.tsx";

/** Shows the sign-in to nobody in particular, and the pages to a session. */
export function App() {
  const session = useSessionQuery();
  if (session.data === undefined) {
    if (session.error !== null)
      return <ProblemBox thrown={session.error} onRetry={() => void session.refetch()} />;
    return <Loader size="sm" m="xl" aria-label="Asking who is signed in" />;
  }
  if (session.data === null) return <SignIn />;
  const who = session.data;
  return (
    <Shell>
      <Switch>
        {ROUTES.filter(({ scope }) => scope === undefined || hasScope(who, scope)).map(
          ({ path, page: Page, title }) => (
            <Route key={path} path={path}>
              <PageBoundary title={title}>
                <Suspense fallback={<Loader size="sm" m="xl" aria-label={`Loading ${title}`} />}>
                  <Page />
                </Suspense>
              </PageBoundary>
            </Route>
          ),
        )}
        <Route path="/sign-in">
          <Redirect to="/" replace />
        </Route>
        <Route>
          <PageMissing />
        </Route>
      </Switch>
    </Shell>
  );
}
