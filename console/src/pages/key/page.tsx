import { PageHeader } from '../../display/page-header';

export default function Page() {
  return <PageHeader title="Your key" />;
}
