import { Alert, Button, Group, Stack, Tabs, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { Snippet } from '../../display/copyable';
import { Dialog } from '../../display/dialog';
import type { UsageFilter } from '../../usage/use-usage';
import { useFrequentModel } from './frequent-model';
import { snippetsFor } from './snippets';

/** The secret of a key, shown once, and how programs use it. It lives only as long as this dialog. */
export function IssuedSecret({
  secret,
  title,
  calls,
  onClose,
}: {
  secret: string;
  title: string;
  /** Whose calls name the model of the examples. */
  calls: UsageFilter;
  onClose: () => void;
}) {
  const [base, setBase] = useState(window.location.origin);
  const [confirmed, setConfirmed] = useState(false);
  const snippets = snippetsFor(secret, base.replace(/\/+$/, ''), useFrequentModel(calls));
  return (
    <Dialog
      opened
      onClose={onClose}
      title={title}
      size="lg"
      closeOnClickOutside={false}
      closeOnEscape={confirmed}
    >
      <Stack gap="md">
        <Alert
          variant="outline"
          color="yellow"
          title="Copy the secret now"
          styles={{ title: { color: 'var(--postern-warning)' } }}
        >
          It is shown only here and only once: Postern keeps no copy. If it is lost, rotate the key.
        </Alert>
        {/* Whoever copied it may leave with Escape; others would lose it by accident. */}
        <div onCopy={() => setConfirmed(true)} onClick={() => setConfirmed(true)}>
          <Snippet text={secret} what="secret" />
        </div>
        <TextInput
          label="Address of the gateway"
          description="As programs reach it. It differs from this page's if the admin API has a port of its own."
          value={base}
          onChange={(event) => setBase(event.currentTarget.value)}
          spellCheck={false}
        />
        <Tabs defaultValue="curl" keepMounted={false}>
          <Tabs.List>
            {snippets.map(({ id, label }) => (
              <Tabs.Tab key={id} value={id}>
                {label}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          {snippets.map(({ id, label, text, hint }) => (
            <Tabs.Panel key={id} value={id} pt="sm">
              <Text size="sm" c="dimmed" mb={6}>
                {hint}
              </Text>
              <Snippet text={text} what={`lines for ${label}`} />
            </Tabs.Panel>
          ))}
        </Tabs>
        <Group justify="flex-end">
          <Button onClick={onClose}>I have copied it</Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
