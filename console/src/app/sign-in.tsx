import {
  Button,
  Center,
  Code,
  Divider,
  Group,
  Paper,
  PasswordInput,
  Stack,
  Text,
  Title,
} from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api } from '../api/client';
import { ErrorAlert } from '../display/error-alert';
import { PageLink } from '../display/links';
import { ColorSchemeButton } from './color-scheme-button';
import { Logo } from './logo';
import { type Session, useSignIn } from './session';

/** Shown at any address while nobody is signed in, so that the address leads on after signing in. */
export function SignIn() {
  useDocumentTitle('Sign in · Postern');
  return (
    <Center mih="100vh" p="md" component="main">
      <Paper withBorder p={{ base: 'md', xs: 'xl' }} w="100%" maw={420}>
        <Stack gap="md">
          <Group justify="space-between">
            <Logo />
            <ColorSchemeButton />
          </Group>
          <Title order={1}>Sign in</Title>
          <SignInForm />
          <Text size="sm" c="dimmed">
            Only have a gateway key?{' '}
            <PageLink to="/key" underline="always">
              Show your key
            </PageLink>
          </Text>
        </Stack>
      </Paper>
    </Center>
  );
}

/** @param again whose page stays open below, and goes on if the same one signs in */
export function SignInForm({ again }: { again?: Session }) {
  const [token, setToken] = useState('');
  const signIn = useSignIn(again);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (token.trim() !== '') signIn.mutate(token.trim());
  };
  return (
    <>
      <SingleSignOn inNewTab={again !== undefined} />
      <form onSubmit={submit}>
        <Stack gap="sm">
          <PasswordInput
            label="Admin token"
            description={
              <>
                The gateway’s <Code>ADMIN_TOKEN</Code>, or your own token, which begins with <Code>pta_</Code>
                . A local clone has it in{' '}
                <Code style={{ whiteSpace: 'nowrap' }}>data/secrets/admin-token</Code>
              </>
            }
            value={token}
            onChange={(event) => setToken(event.currentTarget.value)}
            autoComplete="current-password"
            spellCheck={false}
            visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the token', tabIndex: 0 }}
            required
            withAsterisk={false}
            autoFocus
          />
          <ErrorAlert
            error={signIn.error}
            wrongSecret="The gateway does not accept this token: it is unknown, or it has ended. Check that it was copied whole."
          />
          <Button type="submit" loading={signIn.isPending} disabled={token.trim() === ''}>
            Sign in
          </Button>
        </Stack>
      </form>
    </>
  );
}

/** Leads to the provider, and from there back to this address. In a new tab this page stays as it is. */
function SingleSignOn({ inNewTab }: { inNewTab: boolean }) {
  const { data } = useQuery({
    queryKey: ['single-sign-on'],
    queryFn: ({ signal }) => api.get('/admin/v1/oidc', { signal }),
    staleTime: Infinity,
  });
  if (data?.enabled !== true) return null;
  const { pathname, search } = window.location;
  return (
    <>
      <Button
        component="a"
        h="auto"
        py={4}
        // The label stays in the middle of a button whose height is that of its text.
        styles={{ inner: { minHeight: 26 }, label: { whiteSpace: 'normal', textAlign: 'center' } }}
        target={inNewTab ? '_blank' : undefined}
        rel="noopener"
        href={`/admin/v1/oidc/start?${new URLSearchParams({ return_to: pathname + search })}`}
      >
        Sign in with single sign-on{inNewTab ? ', in a new tab' : ''}
      </Button>
      <Divider label="or with a token" />
    </>
  );
}
