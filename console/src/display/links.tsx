import { Anchor, type AnchorProps, Button, type ButtonProps } from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import type { ComponentPropsWithRef } from 'react';

type Native = Omit<ComponentPropsWithRef<'a'>, keyof AnchorProps | keyof ButtonProps>;

/** A link to a page of the console, in text. */
export const PageLink = createLink((props: AnchorProps & Native) => <Anchor {...props} />);

/** A link to a page of the console that looks like a button. */
export const PageButton = createLink((props: ButtonProps & Native) => <Button component="a" {...props} />);
