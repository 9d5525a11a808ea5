import { Button, Stack } from '@mantine/core';
import { useMayChange } from '../../app/session';
import { PageHeader } from '../../display/page-header';
import { useUrlState } from '../../url/url-state';
import { CreateToken } from './create-token';
import { Sessions } from './sessions';
import { Tokens } from './tokens';

export default function Access() {
  const [url, setUrl] = useUrlState();
  const mayChange = useMayChange();
  const create = mayChange && <Button onClick={() => setUrl({ new: '1' })}>Create token</Button>;
  return (
    <>
      <PageHeader
        title="Access"
        description="Who may use this console and the admin API, and who is signed in."
      >
        {create}
      </PageHeader>
      <Stack gap="md">
        <Tokens create={create} />
        <Sessions />
      </Stack>
      {mayChange && url.new === '1' && <CreateToken onClose={() => setUrl({ new: undefined })} />}
    </>
  );
}
