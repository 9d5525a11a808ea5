import { Tabs, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { Snippet } from '../../display/copyable';
import { ShownOnce } from '../../forms/shown-once';
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
  const snippets = snippetsFor(secret, base.replace(/\/+$/, ''), useFrequentModel(calls));
  return (
    <ShownOnce
      secret={secret}
      what="secret"
      title={title}
      lost="If it is lost, rotate the key."
      onClose={onClose}
    >
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
    </ShownOnce>
  );
}
