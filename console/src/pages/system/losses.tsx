import { Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api, type ResponseOf } from '../../api/client';
import { useMayChange } from '../../app/session';
import { ErrorAlert } from '../../display/error-alert';
import { Facts } from '../../display/facts';
import { Section } from '../../display/section';
import { StatusBadge, type Tone } from '../../display/status-badge';
import { ExactTime, RelativeTime } from '../../figures/figure';
import { count, duration } from '../../figures/numbers';
import { DialogButton } from '../../forms/dialog-button';
import { FormModal } from '../../forms/form-modal';
import { useSave } from '../../forms/use-save';
import classes from './page.module.css';

type Loss = ResponseOf<'/admin/v1/database/regressions', 'get'>['data'][number];
type Decision = 'put-back' | 'dismiss';

const REFRESH_MS = 10_000;
/** Older ones are in the command line. */
const SHOWN = 5;

const STATES: Record<Loss['state'], { tone: Tone; label: string; what: string }> = {
  put_back: { tone: 'warning', label: 'put back', what: 'The processes put back what they have.' },
  waiting: {
    tone: 'bad',
    label: 'waiting for you',
    what: 'More is lost than the journals keep, as after a restored backup. What is known to have ended is rejected until you decide.',
  },
  dismissed: { tone: 'neutral', label: 'dismissed', what: 'Nothing was put back.' },
  another_database: {
    tone: 'bad',
    label: 'another database',
    what: 'Postgres has nothing of what the processes have written. Nothing is put back.',
  },
};

/** What Postgres has lost, and what came of it. Nothing if it has lost nothing. */
export function Losses() {
  const { data, error, refetch } = useQuery({
    queryKey: ['losses'],
    queryFn: ({ signal }) => api.get('/admin/v1/database/regressions', { query: { limit: SHOWN }, signal }),
    refetchInterval: REFRESH_MS,
  });
  if (error !== null) return <ErrorAlert error={error} retry={() => void refetch()} />;
  if (data === undefined || data.data.length === 0) return null;
  return (
    <Section title="Lost by Postgres">
      <Text size="sm" c="dimmed" mb="sm">
        What Postgres had acknowledged and did not have any more, as after a failover to an asynchronous
        standby.
      </Text>
      <Stack gap="lg">
        {data.data.map((loss) => (
          <OneLoss key={loss.id} loss={loss} />
        ))}
      </Stack>
    </Section>
  );
}

function OneLoss({ loss }: { loss: Loss }) {
  const { tone, label, what } = STATES[loss.state];
  const isOpen = useMayChange() && (loss.state === 'waiting' || loss.state === 'another_database');
  return (
    <div>
      <Group gap="xs" mb="xs">
        <StatusBadge tone={tone}>{label}</StatusBadge>
        <Text size="sm">
          noticed <RelativeTime at={loss.noticed_at} />
        </Text>
        {isOpen && loss.state === 'waiting' && (
          <Decide
            loss={loss}
            decision="put-back"
            label="Put back"
            title="Put back what was lost"
            action="Put back"
          >
            Every process puts back what it has: rows of calls, revoked keys, Idempotency-Keys. Do it if the
            backup was not restored on purpose.
          </Decide>
        )}
        {isOpen && (
          <Decide loss={loss} decision="dismiss" label="Dismiss" title="Put back nothing" action="Dismiss">
            Keys, tokens, sessions and people whose end was lost are accepted again: end them again if needed.
          </Decide>
        )}
      </Group>
      <Text size="sm" mb="xs">
        {what}
      </Text>
      <Facts
        facts={[
          ['Lost from', loss.lost_from && <ExactTime at={loss.lost_from} seconds />],
          ['For', loss.gap_seconds === null ? undefined : duration(loss.gap_seconds * 1_000)],
          ['Rows put back', count(loss.rows_put_back)],
          ['Rows of removed days', loss.rows_skipped === 0 ? undefined : count(loss.rows_skipped)],
          ['Idempotency-Keys put back', count(loss.claims_put_back)],
          ['Ends put back', count(loss.ends_put_back)],
        ]}
      />
      <ToRepeat loss={loss} />
    </div>
  );
}

/** Rotations first: the old secret works, and whoever has only the new one gets 401. */
function ToRepeat({ loss: { lost_entries: entries } }: { loss: Loss }) {
  if (entries.length === 0) return null;
  const isRotation = ({ action }: (typeof entries)[number]) => action === 'rotated';
  const sorted = [...entries.filter(isRotation), ...entries.filter((entry) => !isRotation(entry))];
  return (
    <>
      <Title order={3} size="h5" mt="sm" mb={4}>
        Changes to repeat
      </Title>
      <ul className={classes.lost}>
        {sorted.map((entry) => (
          <li key={entry.id}>
            {entry.subject_type.replaceAll('_', ' ')} <strong>{entry.subject_name}</strong>{' '}
            {entry.action.replaceAll('_', ' ')} by {entry.actor}, <ExactTime at={entry.at} seconds />
            {isRotation(entry) && ': the old secret works, the new one does not'}
          </li>
        ))}
      </ul>
    </>
  );
}

function Decide({
  loss,
  decision,
  label,
  title,
  action,
  children,
}: {
  loss: Loss;
  decision: Decision;
  label: string;
  title: string;
  action: string;
  children: ReactNode;
}) {
  return (
    <DialogButton label={label} variant="default">
      {(close) => (
        <Confirmation loss={loss} decision={decision} title={title} action={action} onClose={close}>
          {children}
        </Confirmation>
      )}
    </DialogButton>
  );
}

function Confirmation({
  loss,
  decision,
  title,
  action,
  onClose,
  children,
}: {
  loss: Loss;
  decision: Decision;
  title: string;
  action: string;
  onClose: () => void;
  children: ReactNode;
}) {
  const path = { id: loss.id };
  const { form } = useSave(
    () =>
      decision === 'dismiss'
        ? api.post('/admin/v1/database/regressions/{id}/dismiss', { path, body: {} })
        : api.post('/admin/v1/database/regressions/{id}/put-back', { path, body: {} }),
    ['losses', 'system', 'attention'],
    onClose,
  );
  return (
    <FormModal title={title} onClose={onClose} action={action} size="md" keeps={false} {...form}>
      <Text size="sm">{children}</Text>
    </FormModal>
  );
}
