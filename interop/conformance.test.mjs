// The public conformance runner against servers with the middleware, and without.
import assert from 'node:assert/strict';
import test from 'node:test';
import { conformance, exampleOverHTTP } from './lib/servers.mjs';
import { verdicts } from './lib/verdicts.mjs';

// Every scenario of the runner stands in one of these lists; one that is in none fails.
//
// What any server of the SDK passes that has the middleware, the example too.
const anyServer = [
  'server-initialize', 'logging-set-level', 'ping', 'tools-list', 'server-sse-multiple-streams', 'dns-rebinding-protection',
];
// What calls tools by name, which the server for it has.
const withItsTools = [
  'tools-call-simple-text', 'tools-call-image', 'tools-call-audio', 'tools-call-embedded-resource',
  'tools-call-mixed-content', 'tools-call-with-logging', 'tools-call-error', 'tools-call-with-progress',
  'tools-call-sampling', 'tools-call-elicitation', 'json-schema-2020-12',
  'elicitation-sep1034-defaults', 'elicitation-sep1330-enums',
];
// What can give no verdict. This one asks for a priming event under protocol 2025-03-26; the
// SDK sends it from 2025-11-25 on, so there is nothing to resume from, and the runner warns.
const undecided = ['server-sse-polling'];
// What has to do with neither tools, progress nor cancellation; the server has none of it.
const outside = [
  'completion-complete', 'resources-list', 'resources-read-text', 'resources-read-binary', 'resources-templates-read',
  'resources-subscribe', 'resources-unsubscribe', 'prompts-list', 'prompts-get-simple', 'prompts-get-with-args',
  'prompts-get-embedded-resource', 'prompts-get-with-image',
];

test('conformance', async (t) => {
  const bare = await verdicts(t, conformance('-bare'));
  const ours = await verdicts(t, conformance());
  const example = await verdicts(t, exampleOverHTTP());

  await t.test('every scenario is accounted for', () => {
    assert.deepEqual([...ours.keys()].sort(), [...anyServer, ...withItsTools, ...undecided, ...outside].sort());
  });
  for (const name of [...anyServer, ...withItsTools]) {
    await t.test(name, () => passed(ours.get(name)));
  }
  for (const name of anyServer) {
    await t.test(`${name}, the example`, () => passed(example.get(name)));
  }
  for (const name of undecided) {
    await t.test(`${name} fails nowhere and passes nowhere`, () => {
      for (const checks of [bare, ours]) assert.deepEqual(checks.get(name).filter(([, status]) => /SUCCESS|FAILURE/.test(status)), []);
    });
  }
  await t.test('the middleware changes no verdict', () => assert.deepEqual(ours, bare));
});

function passed(checks) {
  assert.ok(checks.some(([, status]) => status === 'SUCCESS'));
  assert.deepEqual(checks.filter(([, status]) => status === 'FAILURE' || status === 'WARNING'), []);
}
