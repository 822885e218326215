#!/bin/sh
# Stands in for an agent: reads its prompt from stdin and prints a line of JSON for each thing it does.
# Called as: stand-in-agent.sh --session <id> [--resume] [--model <model>]
read -r prompt
echo "{\"event\":\"session\",\"text\":\"$2\"}"
echo "{\"event\":\"thinking\",\"text\":\"$prompt Let me see.\"}"
echo "This line is no JSON: it is skipped."
echo "{\"event\":\"answer\",\"text\":\"42\"}"
