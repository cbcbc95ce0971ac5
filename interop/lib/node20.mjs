// Lets the conformance runner start on Node 20: it imports fs.globSync, which came with
// Node 22 and which only another command of it calls.
import * as fs from 'node:fs';
import { register } from 'node:module';

const shim = `
export * from 'node:fs';
export { default } from 'node:fs';
export function globSync() { throw new Error('fs.globSync needs Node 22'); }`;

const hooks = `
export async function resolve(specifier, context, next) {
  if (specifier === 'fs' && /conformance(-next)?\\/dist\\//.test(context.parentURL))
    return { url: ${JSON.stringify('data:text/javascript,' + encodeURIComponent(shim))}, shortCircuit: true };
  return next(specifier, context);
}`;

if (!('globSync' in fs)) register('data:text/javascript,' + encodeURIComponent(hooks));
