import { Box, Modal, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTopLayer } from '../display/use-top-layer';
import { type Session, sessionQuery } from './session';
import { SignInForm } from './sign-in';

/** Covers the page of somebody whose session has ended. Below it the page and what was typed stay as they are. */
export default function SignInAgain({ as }: { as: Session }) {
  useTopLayer(true);
  // Whoever signs in in another tab comes back to this one.
  useQuery({ ...sessionQuery, refetchOnWindowFocus: 'always' });
  return (
    <Modal
      opened
      fullScreen
      zIndex={1_000}
      onClose={() => undefined}
      withCloseButton={false}
      closeOnEscape={false}
      title="Your session has ended"
      // Above the form, and as wide.
      styles={{
        header: {
          maxWidth: 'min(420px, 100% - 2rem)',
          marginInline: 'auto',
          paddingInline: 0,
          paddingTop: 48,
        },
        title: { fontSize: 'var(--mantine-h1-font-size)' },
      }}
    >
      <Box maw={420} mx="auto">
        <Stack gap="md">
          <Text size="sm">Sign in as {as.actor} to go on where you were. What you typed is still there.</Text>
          <SignInForm again={as} />
        </Stack>
      </Box>
    </Modal>
  );
}
