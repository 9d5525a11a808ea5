import {
  AppShell,
  Box,
  Burger,
  Button,
  Divider,
  Group,
  ScrollArea,
  Stack,
  VisuallyHidden,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { EmptyState } from '../display/empty-state';
import { SignOutIcon } from '../display/icons';
import { PageLink } from '../display/links';
import { PageHeader } from '../display/page-header';
import { ROLES } from '../pages/access/roles';
import { SearchBox } from '../search/search-box';
import { sharedState, useUrlState } from '../url/url-state';
import { ColorSchemeButton } from './color-scheme-button';
import classes from './layout.module.css';
import { Logo } from './logo';
import { PAGES } from './navigation';
import { ofTeams, type Session, useSignOut } from './session';

/** Navigation on the left, or behind a button on narrow screens, and the page beside it. */
export function Layout({ session }: { session: Session }) {
  const [opened, { toggle, close }] = useDisclosure(false);
  const [url] = useUrlState();
  const path = useRouterState({ select: (state) => state.location.pathname });
  // The page that is there until the one at the new address is loaded.
  const shown = useRouterState({ select: (state) => state.matches.at(-1)?.pathname });
  const page = PAGES.find(({ to }) => to === shown);
  const isAllowed = page === undefined || page.all || !ofTeams(session);
  const signOut = useSignOut();
  const main = useRef<HTMLDivElement>(null);
  useFocusOnNewPage(path, main);
  return (
    <AppShell
      header={{ height: 52, collapsed: false }}
      navbar={{ width: 244, breakpoint: 'md', collapsed: { mobile: !opened } }}
      layout="alt"
      padding={{ base: 'sm', sm: 'lg' }}
      classNames={{ header: classes.header, main: classes.main, navbar: classes.navbar }}
    >
      <a href="#main" className={classes.skip}>
        Skip to content
      </a>
      <AppShell.Header px={{ base: 'sm', sm: 'lg' }}>
        <Group h="100%" justify="space-between" gap="sm" wrap="nowrap">
          <Box visibleFrom="sm" hiddenFrom="md">
            <Logo />
          </Box>
          <SearchBox />
          <Burger
            opened={opened}
            onClick={toggle}
            size="sm"
            hiddenFrom="md"
            aria-label={opened ? 'Close navigation' : 'Open navigation'}
            aria-expanded={opened}
          />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="sm" aria-label="Pages" component="nav">
        <Group justify="space-between" mb="md" px={8} pt={4}>
          <Logo />
          <Burger opened onClick={toggle} size="sm" hiddenFrom="md" aria-label="Close navigation" />
        </Group>
        <ScrollArea style={{ flex: 1 }}>
          <Stack component="ul" gap={2} p={0} m={0}>
            {PAGES.filter(({ all }) => all || !ofTeams(session)).map(({ to, label, Icon }) => (
              <li key={to} className={classes.item}>
                <Link
                  to={to}
                  search={sharedState(url)}
                  activeOptions={{ exact: to === '/', includeSearch: false }}
                  className={classes.link}
                  onClick={close}
                >
                  <Icon />
                  {label}
                </Link>
              </li>
            ))}
          </Stack>
        </ScrollArea>
        <Divider my="xs" />
        <Stack gap={2}>
          <div className={classes.who}>
            <VisuallyHidden>Signed in as </VisuallyHidden>
            <b>{session.actor}</b>
            <br />
            {ROLES[session.role].label}. {ROLES[session.role].may}
          </div>
          <ColorSchemeButton />
          <Button
            variant="subtle"
            color="gray"
            c="dimmed"
            size="xs"
            justify="flex-start"
            leftSection={<SignOutIcon size={16} />}
            loading={signOut.isPending}
            onClick={() => signOut.mutate()}
          >
            Sign out
          </Button>
        </Stack>
      </AppShell.Navbar>
      <AppShell.Main>
        <div id="main" ref={main} tabIndex={-1} className={classes.content}>
          {isAllowed ? <Outlet /> : <NotAllowed title={page.label} />}
        </div>
      </AppShell.Main>
    </AppShell>
  );
}

/** In place of a page that only those see who see all teams. */
function NotAllowed({ title }: { title: string }) {
  return (
    <>
      <PageHeader title={title} />
      <EmptyState title="Not allowed" action={<PageLink to="/">Go to the overview</PageLink>}>
        Your role does not include this page: ask an administrator.
      </EmptyState>
    </>
  );
}

/** A link of the navigation moves the focus to the new page, so that a screen reader goes on there. */
function useFocusOnNewPage(path: string, main: React.RefObject<HTMLDivElement | null>) {
  const previous = useRef(path);
  useEffect(() => {
    if (previous.current === path) return;
    previous.current = path;
    main.current?.focus({ preventScroll: true });
  }, [path, main]);
}
