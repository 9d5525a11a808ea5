import { Alert, Box, Code, Group, Stack, Text, Title } from '@mantine/core';
import { useLocation } from '@tanstack/react-router';
import { useEffect } from 'react';
import source from '../../../../docs/reference/errors.md?raw';
import { ColorSchemeButton } from '../../app/color-scheme-button';
import { Logo } from '../../app/logo';
import { PageLink } from '../../display/links';
import { PageHeader } from '../../display/page-header';
import { type Block, blocksOf, codesOf } from './blocks';
import { Inline } from './inline';
import classes from './page.module.css';

const [, ...BLOCKS] = blocksOf(source);
const CODES = new Set(BLOCKS.flatMap((block) => (block.kind === 'list' ? block.items : [])).flatMap(codesOf));

/** The errors of the gateway and what to do about them, for everybody who gets one. The address may name one: `#not_found`. */
export default function ErrorsPage() {
  const code = useLocation({ select: ({ hash }) => hash });
  useEffect(() => {
    void document.getElementById(code)?.scrollIntoView();
  }, [code]);
  return (
    <Box component="main" maw={960} mx="auto" p={{ base: 'sm', sm: 'lg' }}>
      <Group justify="space-between" mb="lg">
        <Logo />
        <ColorSchemeButton />
      </Group>
      <PageHeader title="Errors" description="What the gateway reports, and what to do about it." />
      <Stack gap="sm">
        {code !== '' && !CODES.has(code) && (
          <Alert variant="outline" title="This error is not of the gateway itself">
            A module that was added to it reports <Code>{code}</Code>.
          </Alert>
        )}
        {BLOCKS.map((block, index) => (
          <Shown key={index} block={block} code={code} />
        ))}
        <Text size="sm" c="dimmed">
          <PageLink to="/" underline="always">
            Go to the console
          </PageLink>
        </Text>
      </Stack>
    </Box>
  );
}

function Shown({ block, code }: { block: Block; code: string }) {
  switch (block.kind) {
    case 'heading':
      return (
        <Title order={block.level === 2 ? 2 : 3} size={block.level === 2 ? 'h3' : 'h5'} mt="sm">
          <Inline text={block.text} />
        </Title>
      );
    case 'code':
      return (
        <Code block className={classes.text} style={{ whiteSpace: 'pre-wrap' }}>
          {block.text}
        </Code>
      );
    case 'quote':
      return (
        <blockquote className={`${classes.quote} ${classes.text}`}>
          <Inline text={block.text} />
        </blockquote>
      );
    case 'list':
      return (
        <ul className={classes.list}>
          {block.items.map((item) => (
            <Item key={item} item={item} code={code} />
          ))}
        </ul>
      );
    case 'text':
      return (
        <Text size="sm" className={classes.text}>
          <Inline text={block.text} />
        </Text>
      );
  }
}

/** An item has an anchor for each code that it is about. */
function Item({ item, code }: { item: string; code: string }) {
  const codes = codesOf(item);
  return (
    <Text
      component="li"
      size="sm"
      className={`${classes.item} ${classes.text}`}
      data-shown={codes.includes(code) || undefined}
    >
      {codes.map((id) => (
        <span key={id} id={id} />
      ))}
      <Inline text={item} />
    </Text>
  );
}
