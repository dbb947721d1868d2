"""Programs that use LeetCode's ListNode and TreeNode. Expected values are by hand."""

import pytest

from marft_envs.coding import grade

REVERSE = """class Solution:
    def f(self, head: Optional[ListNode]) -> Optional[ListNode]:
        last = None
        while head:
            head.next, last, head = last, head, head.next
        return last
"""
INVERT = """class Solution:
    def f(self, root: Optional[TreeNode]) -> Optional[TreeNode]:
        if root:
            root.left, root.right = self.f(root.right), self.f(root.left)
        return root
"""
MERGE = """class Solution:
    def f(self, lists: List[Optional[ListNode]]) -> Optional[ListNode]:
        values = []
        for node in lists:
            while node:
                values.append(node.val)
                node = node.next
        head = None
        for value in sorted(values, reverse=True):
            head = ListNode(value, head)
        return head
"""
OWN = """class ListNode:
    def __init__(self, x):
        self.val = x
        self.next = None
def f(head: 'ListNode') -> int:
    n = 0
    while head:
        n, head = n + 1, head.next
    return n
"""
LEVELS = "def f(root: TreeNode) -> List[TreeNode]:\n    return [root.left, root.right]"
CYCLE = "def f(head: ListNode) -> ListNode:\n    head.next = head\n    return head"
CASES = [
    (REVERSE, [[1, 2, 3]], [3, 2, 1], 1.0),
    (REVERSE, [[1, 2, 3]], [1, 2, 3], 0.0),
    (REVERSE, [[]], [], 1.0),
    (INVERT, [[4, 2, 7, 1, None, 6]], [4, 7, 2, None, 6, None, 1], 1.0),
    (INVERT, [[4, 2, 7, 1, None, 6]], [4, 7, 2, 6, None, 1], 0.0),
    (INVERT, [[]], [], 1.0),
    (MERGE, [[[1, 4], [2], []]], [1, 2, 4], 1.0),
    (OWN, [[5, 6]], 2, 1.0),
    (LEVELS, [[1, 2, 3, None, 4]], [[2, None, 4], [3]], 1.0),
    (CYCLE, [[1]], [1], 0.0),
]


@pytest.mark.parametrize(("program", "arguments", "expected", "score"), CASES)
def test_lists_become_nodes_and_nodes_become_lists(program, arguments, expected, score):
    tests = [{"fn": "f", "args": arguments, "expected": expected}]
    assert grade(program, tests, kind="call", prelude=True).score == score
