import { Group, Stack, Text, Title } from '@mantine/core';
import { api } from '../../api/client';
import { useMayChange } from '../../app/session';
import { CopyableId } from '../../display/copyable';
import { Facts } from '../../display/facts';
import { SideDrawer } from '../../display/side-drawer';
import { ExactTime } from '../../figures/figure';
import { DialogButton } from '../../forms/dialog-button';
import { RemoveAction } from '../../forms/remove-action';
import { DIALECTS, RETRY_CAUSES, type Route, STRATEGIES } from './route';
import { RouteForm } from './route-form';
import { TargetHealth } from './target-health';

export function RouteDrawer({ shown, onClose }: { shown: Route | undefined; onClose: () => void }) {
  return (
    <SideDrawer opened={shown !== undefined} onClose={onClose} title={shown?.name ?? 'Route'}>
      {shown !== undefined && <Details shown={shown} onClose={onClose} />}
    </SideDrawer>
  );
}

function Details({ shown, onClose }: { shown: Route; onClose: () => void }) {
  const causes = shown.retry_on.map((cause) => RETRY_CAUSES[cause]);
  return (
    <Stack gap="md">
      <Actions shown={shown} onClose={onClose} />
      <section>
        <Title order={2} mb="xs">
          Targets
        </Title>
        <Stack component="ol" gap="xs" m={0} pl="lg" aria-label="Targets">
          {shown.targets.map((target, at) => (
            <li key={at}>
              <Group gap="xs" component="span" display="inline-flex">
                <Text span size="sm" fw={600} style={{ overflowWrap: 'anywhere' }}>
                  {target.provider}
                </Text>
                <TargetHealth target={target} />
              </Group>
              {Object.entries(target.models ?? {}).map(([sent, own]) => (
                <Text key={sent} size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
                  {sent} is sent as {own}
                </Text>
              ))}
            </li>
          ))}
        </Stack>
      </section>
      <Facts
        facts={[
          ['Target is chosen', STRATEGIES[shown.strategy]],
          [
            'Another target',
            causes.length === 0 ? (
              'never'
            ) : (
              <>
                {causes.map((cause) => (
                  <div key={cause}>{cause}</div>
                ))}
              </>
            ),
          ],
          ['Attempts', `${shown.max_attempts} at most`],
          ['API', DIALECTS[shown.dialect]],
          ['Default', shown.default ? 'yes: calls to /v1 use it, unless PROVIDER_URL is set' : 'no'],
          [
            'Programs send to',
            <CopyableId key="address" id={`${window.location.origin}/p/${shown.name}`} what="address" />,
          ],
          ['Added', <ExactTime key="added" at={shown.created_at} />],
          ['Changed', <ExactTime key="changed" at={shown.updated_at} />],
        ]}
      />
    </Stack>
  );
}

function Actions({ shown, onClose }: { shown: Route; onClose: () => void }) {
  if (!useMayChange()) return null;
  return (
    <Group gap="xs">
      <DialogButton label="Edit">
        {(close) => <RouteForm shown={shown} onClose={close} onSaved={close} />}
      </DialogButton>
      <RemoveAction
        what="route"
        name={shown.name}
        remove={() => api.delete('/admin/v1/routes/{name}', { path: { name: shown.name }, shown })}
        lists={['routes']}
        onRemoved={onClose}
      >
        Calls to it are rejected from now on. Its providers stay, and its usage stays in the log.
      </RemoveAction>
    </Group>
  );
}
